"""People whom providers are asked about, sessions that these began, and spent logout tokens."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0067_pause")]

    operations = [
        migrations.CreateModel(
            name="FollowedPerson",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="followed",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("provider_id", models.CharField(max_length=32)),
                ("token", models.TextField(default="")),
                ("by_userinfo", models.BooleanField(default=False)),
                ("confirmed_ms", models.BigIntegerField()),
                ("due_ms", models.BigIntegerField(db_index=True)),
                ("stopped_ms", models.BigIntegerField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="ProviderSession",
            fields=[
                (
                    "session_key",
                    models.CharField(max_length=40, primary_key=True, serialize=False),
                ),
                ("provider_id", models.CharField(max_length=32)),
                ("sid", models.CharField(default="", max_length=255)),
                ("began_ms", models.BigIntegerField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SpentLogoutToken",
            fields=[
                (
                    "digest",
                    models.CharField(max_length=64, primary_key=True, serialize=False),
                ),
                ("until_ms", models.BigIntegerField(db_index=True)),
            ],
        ),
    ]

"""The chain of hashes over the audit. The leading worker seals the rows of before, too."""

from django.db import migrations, models

_NO_HASH = "0" * 64


class Migration(migrations.Migration):
    dependencies = [("console", "0064_browser_sessions")]

    operations = [
        migrations.CreateModel(
            name="AuditSeal",
            fields=[
                ("position", models.BigIntegerField(primary_key=True, serialize=False)),
                ("entry", models.BigIntegerField(unique=True)),
                ("project", models.BigIntegerField(null=True)),
                ("at_ms", models.BigIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("hash", models.CharField(max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name="AuditChain",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.BigIntegerField(default=0)),
                ("hash", models.CharField(default=_NO_HASH, max_length=64)),
                ("anchor", models.BigIntegerField(default=0)),
                ("anchor_hash", models.CharField(default=_NO_HASH, max_length=64)),
                ("settled", models.BigIntegerField(default=0)),
                ("seen", models.BigIntegerField(default=0)),
                ("seen_transaction", models.BigIntegerField(default=0)),
                ("seen_ms", models.BigIntegerField(default=0)),
            ],
        ),
    ]

"""Projects whose members need a second factor."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0068_followed_people")]

    operations = [
        migrations.CreateModel(
            name="SecondFactorRule",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="console.project",
                    ),
                ),
            ],
        ),
    ]

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0002_value_keys")]
    operations = [
        migrations.CreateModel(
            name="ServerFact",
            fields=[
                ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("value", models.CharField(max_length=200)),
            ],
        ),
    ]

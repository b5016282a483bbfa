from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0031_key_disabled_by"),
    ]

    operations = [
        migrations.CreateModel(
            name="LoginAttempts",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("count", models.IntegerField()),
                ("until_ms", models.BigIntegerField(db_index=True)),
            ],
        ),
    ]

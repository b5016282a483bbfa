from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0043_alarms"),
    ]

    operations = [
        migrations.CreateModel(
            name="ReadinessMinute",
            fields=[
                ("minute_ms", models.BigIntegerField(primary_key=True, serialize=False)),
                ("looks", models.IntegerField()),
                ("ready", models.IntegerField()),
                ("reason", models.CharField(default="", max_length=200)),
            ],
        ),
    ]

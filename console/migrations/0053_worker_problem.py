"""A worker says what it lacks."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0052_express_children"),
    ]

    operations = [
        migrations.AddField(
            model_name="worker",
            name="problem",
            field=models.CharField(db_default="", default="", max_length=200),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0024_throttled_api"),
    ]

    operations = [
        migrations.AddField(
            model_name="project",
            name="masked",
            field=models.TextField(db_default="", default=""),
        ),
    ]

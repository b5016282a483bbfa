from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0030_error_names"),
    ]

    operations = [
        migrations.AddField(
            model_name="accesskey",
            name="disabled_by",
            field=models.CharField(db_default="", default="", max_length=150),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0024_masked"),
    ]

    operations = [
        migrations.AddField(
            model_name="membership",
            name="columns",
            field=models.TextField(db_default="", default=""),
        ),
    ]

"""An event says who put it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0056_start_link_members"),
    ]

    operations = [
        migrations.AddField(
            model_name="outboxevent",
            name="sent_by",
            field=models.CharField(db_default="", default="", max_length=150),
        ),
    ]

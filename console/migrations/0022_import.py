from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0021_logs"),
    ]

    operations = [
        migrations.AddField(
            model_name="execution",
            name="imported_ms",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddIndex(
            model_name="execution",
            index=models.Index(
                condition=models.Q(("imported_ms__isnull", False)),
                fields=["project", "-imported_ms"],
                name="execution_by_import",
            ),
        ),
    ]

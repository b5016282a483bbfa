"""The audit is read by person: without this index that scanned it backwards, all of it at worst."""

from django.db import migrations, models

from console.db.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("console", "0046_narrower_indexes"),
    ]

    operations = [
        AddIndexConcurrently(
            "auditentry",
            models.Index(fields=["project", "actor", "id"], name="audit_by_person"),
        ),
    ]

"""ListExecutions sorts by the time of the end, else of the redrive or start."""

from django.db import migrations, models
from django.db.models.functions import Coalesce

from console.db.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("console", "0049_stop_reasons_and_key_descriptions"),
    ]

    operations = [
        AddIndexConcurrently(
            "execution",
            models.Index(
                models.F("state_machine"),
                models.F("status"),
                Coalesce("stop_ms", "redrive_ms", "start_ms").desc(),
                models.F("id").desc(),
                name="execution_by_time",
                condition=models.Q(map_run__isnull=True),
            ),
        ),
    ]

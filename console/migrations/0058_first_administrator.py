"""The longest-standing active owner of the project ``default`` administers the server.

That person let the others in, or was let in by the operator. Where there is an administrator, or no
such owner, nothing changes: ``manage.py administrator`` appoints one.
"""

from typing import Any

from django.conf import settings
from django.db import migrations


def appoint(apps: Any, schema_editor: Any) -> None:
    """Appoint that owner, unless the server has an administrator."""
    database = schema_editor.connection.alias
    users = apps.get_model(*settings.AUTH_USER_MODEL.split(".")).objects.using(database)
    if users.filter(is_superuser=True, is_active=True).exists():
        return
    members = apps.get_model("console", "Membership").objects.using(database)
    owners = members.filter(project__name="default", role="owner", user__is_active=True)
    oldest = owners.order_by("pk").values_list("user_id", flat=True).first()
    if oldest is not None:
        users.filter(pk=oldest).update(is_superuser=True)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("console", "0057_event_senders"),
    ]

    operations = [migrations.RunPython(appoint, migrations.RunPython.noop)]

"""The tables of a new database, as the migrations up to 0057 make them.

A database of an earlier version goes through the replaced migrations. Their steps that move rows
are left out here: a new database has no rows.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Coalesce

from console.db.tables import CreateModels
from console.statuses import AlarmComparison, AlarmKind, AlarmState, MissingData

_SQLITE_CONSTRAINTS = {
    ("execution", "project"),
    ("execution", "state_machine"),
    ("execution", "definition"),
    ("runrow", "execution"),
    ("runvalue", "execution"),
    ("historyevent", "execution"),
    ("timer", "execution"),
    ("taskrow", "execution"),
    ("inboxmessage", "execution"),
    ("auditentry", "project"),
}
"""Model and foreign key: 0040 dropped these constraints on PostgreSQL."""
_UNUSED = (
    "SELECT indexname FROM pg_indexes WHERE schemaname = ANY(current_schemas(false))"
    r" AND indexname ~ '^console_(execution_arn|taskrow_token_hash|maprun_arn|outboxevent_event_id)"
    r"_\w+_like$'"
)


def _number() -> Any:
    """Return the primary key of most models."""
    return models.BigAutoField(
        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
    )


def _composite(*fields: str) -> Any:
    """Return a primary key of several columns."""
    return models.CompositePrimaryKey(
        *fields, blank=True, editable=False, primary_key=True, serialize=False
    )


def _key(to: Any, **options: Any) -> Any:
    """Return a foreign key; rows go with the row that they refer to."""
    return models.ForeignKey(to, on_delete=models.CASCADE, **options)


def tune_postgresql(apps: Any, schema_editor: Any) -> None:
    """Order the keys of values by bytes, leave room in runs, drop indexes for LIKE."""
    del apps
    if schema_editor.connection.vendor != "postgresql":
        return
    deferred, schema_editor.deferred_sql[:] = list(schema_editor.deferred_sql), []
    for statement in deferred:  # Django makes indexes at the end, after this function
        schema_editor.execute(statement, None)
    schema_editor.execute(
        'ALTER TABLE console_runvalue ALTER COLUMN key TYPE varchar(64) COLLATE "C"', None
    )
    schema_editor.execute("ALTER TABLE console_runrow SET (fillfactor = 50)", None)
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_UNUSED)
        unused = [name for (name,) in cursor.fetchall()]
    for name in unused:
        schema_editor.execute(f"DROP INDEX {name}", None)


_MODELS = [
    migrations.CreateModel(
        name="Definition",
        fields=[
            ("sha256", models.CharField(max_length=64, primary_key=True, serialize=False)),
            ("text", models.TextField()),
        ],
    ),
    migrations.CreateModel(
        name="Project",
        fields=[
            ("id", _number()),
            ("name", models.CharField(max_length=80, unique=True)),
            ("account_id", models.CharField(max_length=12, unique=True)),
            ("masked", models.TextField(db_default="", default="")),
        ],
    ),
    migrations.CreateModel(
        name="StateMachine",
        fields=[
            ("id", _number()),
            ("region", models.CharField(max_length=32)),
            ("name", models.CharField(max_length=80)),
            ("arn", models.CharField(max_length=256, unique=True)),
            ("type", models.CharField(default="STANDARD", max_length=10)),
            ("status", models.CharField(default="ACTIVE", max_length=10)),
            ("role_arn", models.CharField(max_length=256)),
            ("revision_id", models.CharField(default="", max_length=36)),
            ("logging", models.TextField(default="")),
            ("tracing", models.TextField(default="")),
            ("encryption", models.TextField(default="")),
            ("created_ms", models.BigIntegerField()),
            ("updated_ms", models.BigIntegerField()),
            ("next_version", models.IntegerField(default=1)),
            ("definition", models.ForeignKey("console.definition", on_delete=models.PROTECT)),
            ("project", _key("console.project")),
            ("edited_by", models.TextField(db_default="", default="")),
        ],
    ),
    migrations.CreateModel(
        name="Execution",
        fields=[
            ("id", _number()),
            ("state_machine_arn", models.CharField(max_length=256)),
            ("arn", models.CharField(max_length=512, unique=True)),
            ("name", models.CharField(max_length=80)),
            ("status", models.CharField(default="RUNNING", max_length=16)),
            ("role_arn", models.CharField(max_length=256)),
            ("revision_id", models.CharField(default="", max_length=36)),
            ("machine_updated_ms", models.BigIntegerField()),
            ("input", models.TextField()),
            ("output", models.TextField(null=True)),
            ("error", models.TextField(null=True)),
            ("cause", models.TextField(null=True)),
            ("start_ms", models.BigIntegerField()),
            ("stop_ms", models.BigIntegerField(null=True)),
            ("started_by", models.CharField(default="", max_length=150)),
            ("trace_header", models.CharField(default="", max_length=256)),
            ("version_arn", models.CharField(default="", max_length=340)),
            ("alias_arn", models.CharField(default="", max_length=340)),
            ("redrive_count", models.IntegerField(default=0)),
            ("redrive_ms", models.BigIntegerField(null=True)),
            ("item_index", models.IntegerField(null=True)),
            (
                "definition",
                models.ForeignKey(
                    "console.definition",
                    on_delete=models.PROTECT,
                    db_constraint=False,
                    db_index=False,
                ),
            ),
            ("map_run", _key("console.maprun", db_index=False, null=True, related_name="children")),
            ("project", _key("console.project", db_constraint=False, db_index=False)),
            (
                "state_machine",
                models.ForeignKey(
                    "console.statemachine",
                    on_delete=models.SET_NULL,
                    db_constraint=False,
                    db_index=False,
                    null=True,
                ),
            ),
            ("test_case", models.CharField(default="", max_length=80)),
            ("redrive_token", models.CharField(default="", max_length=64)),
            ("imported_ms", models.BigIntegerField(null=True)),
            ("edited_by", models.TextField(null=True)),
            ("acting_for", models.TextField(null=True)),
            ("depth", models.IntegerField(null=True)),
            ("parent", models.BigIntegerField(null=True)),
            ("parent_task", models.IntegerField(null=True)),
            ("redrive_tokens", models.TextField(null=True)),
        ],
        options={
            "indexes": [
                models.Index(
                    fields=["state_machine", "-start_ms", "-id"], name="execution_by_machine"
                ),
                models.Index(fields=["project", "-start_ms", "-id"], name="execution_by_project"),
                models.Index(
                    fields=["state_machine", "status", "-start_ms"], name="execution_by_status"
                ),
                models.Index(
                    condition=models.Q(("stop_ms__isnull", False)),
                    fields=["project", "stop_ms"],
                    name="execution_by_stop",
                ),
                models.Index(
                    condition=models.Q(("redrive_ms__isnull", False)),
                    fields=["project", "redrive_ms"],
                    name="execution_by_redrive",
                ),
                models.Index(
                    condition=models.Q(("map_run__isnull", True)),
                    fields=["project", "-start_ms", "-id"],
                    name="execution_listed",
                ),
                models.Index(
                    condition=models.Q(("map_run__isnull", True)),
                    fields=["project", "status", "-start_ms", "-id"],
                    name="execution_listed_by_status",
                ),
                models.Index(
                    condition=models.Q(("imported_ms__isnull", False)),
                    fields=["project", "-imported_ms"],
                    name="execution_by_import",
                ),
                models.Index(
                    models.F("project"),
                    models.Func(models.F("error"), template="SUBSTR(%(expressions)s, 1, 80)"),
                    condition=models.Q(("error__isnull", False), ("map_run__isnull", True)),
                    name="execution_by_error",
                ),
                models.Index(
                    condition=models.Q(("parent__isnull", False)),
                    fields=["parent"],
                    name="execution_by_parent",
                ),
                models.Index(
                    condition=models.Q(("map_run__isnull", False)),
                    fields=["map_run", "item_index"],
                    name="child_of_map_run",
                ),
                models.Index(
                    models.F("state_machine"),
                    models.F("status"),
                    models.OrderBy(Coalesce("stop_ms", "redrive_ms", "start_ms"), descending=True),
                    models.OrderBy(models.F("id"), descending=True),
                    condition=models.Q(("map_run__isnull", True)),
                    name="execution_by_time",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="HistoryEvent",
        fields=[
            ("pk", _composite("execution_id", "event_id")),
            ("event_id", models.IntegerField()),
            ("previous", models.IntegerField()),
            ("at_ms", models.BigIntegerField()),
            ("type", models.CharField(max_length=32)),
            ("state", models.CharField(default="", max_length=80)),
            ("details", models.TextField(default="")),
            ("execution", _key("console.execution", db_constraint=False, db_index=False)),
        ],
    ),
    migrations.CreateModel(
        name="InboxMessage",
        fields=[
            ("id", _number()),
            ("kind", models.CharField(max_length=20)),
            ("body", models.TextField(default="{}")),
            ("created_ms", models.BigIntegerField()),
            ("execution", _key("console.execution", db_constraint=False)),
        ],
    ),
    migrations.CreateModel(
        name="LoginLink",
        fields=[
            ("token_hash", models.CharField(max_length=64, primary_key=True, serialize=False)),
            ("expires_ms", models.BigIntegerField()),
            ("used_ms", models.BigIntegerField(null=True)),
            ("user", _key(settings.AUTH_USER_MODEL)),
        ],
    ),
    migrations.CreateModel(
        name="MapRun",
        fields=[
            ("id", _number()),
            ("task", models.IntegerField()),
            ("arn", models.CharField(max_length=256, unique=True)),
            ("state_machine_arn", models.CharField(max_length=256)),
            ("status", models.CharField(default="RUNNING", max_length=10)),
            ("max_concurrency", models.IntegerField(default=0)),
            ("tolerated_count", models.IntegerField(null=True)),
            ("tolerated_percentage", models.FloatField(null=True)),
            ("total", models.IntegerField()),
            ("started", models.IntegerField(default=0)),
            ("succeeded", models.IntegerField(default=0)),
            ("failed", models.IntegerField(default=0)),
            ("timed_out", models.IntegerField(default=0)),
            ("aborted", models.IntegerField(default=0)),
            ("start_ms", models.BigIntegerField()),
            ("stop_ms", models.BigIntegerField(null=True)),
            ("definition", models.ForeignKey("console.definition", on_delete=models.PROTECT)),
            ("parent", _key("console.execution", db_index=False, related_name="map_runs")),
            ("reading", models.BooleanField(default=False)),
            ("pending_redrive", models.IntegerField(default=0)),
            ("redrive_count", models.IntegerField(default=0)),
            ("redrive_ms", models.BigIntegerField(null=True)),
            ("express", models.BooleanField(db_default=False, default=False)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(fields=("parent", "task"), name="one_map_run_per_task")
            ],
        },
    ),
    migrations.CreateModel(
        name="Membership",
        fields=[
            ("id", _number()),
            (
                "role",
                models.CharField(
                    choices=[
                        ("viewer", "Viewer"),
                        ("operator", "Operator"),
                        ("editor", "Editor"),
                        ("owner", "Owner"),
                    ],
                    max_length=10,
                ),
            ),
            ("user", _key(settings.AUTH_USER_MODEL)),
            ("project", _key("console.project")),
            ("columns", models.TextField(db_default="", default="")),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(fields=("project", "user"), name="one_role_per_project")
            ],
        },
    ),
    migrations.CreateModel(
        name="AuditEntry",
        fields=[
            ("id", _number()),
            ("at_ms", models.BigIntegerField()),
            ("actor", models.CharField(max_length=150)),
            ("key_id", models.CharField(default="", max_length=32)),
            ("action", models.CharField(max_length=64)),
            ("target", models.CharField(max_length=512)),
            ("reason", models.CharField(default="", max_length=256)),
            ("request_id", models.CharField(default="", max_length=36)),
            ("project", _key("console.project", db_constraint=False, null=True)),
            ("execution", models.CharField(max_length=512, null=True)),
        ],
        options={
            "indexes": [
                models.Index(
                    condition=models.Q(("action", "StartExecution"), _negated=True),
                    fields=["target"],
                    name="audit_target",
                ),
                models.Index(fields=["project", "actor", "id"], name="audit_by_person"),
            ],
        },
    ),
    migrations.CreateModel(
        name="Activity",
        fields=[
            ("id", _number()),
            ("region", models.CharField(max_length=32)),
            ("name", models.CharField(max_length=80)),
            ("arn", models.CharField(max_length=256, unique=True)),
            ("created_ms", models.BigIntegerField()),
            ("project", _key("console.project")),
            ("encryption", models.TextField(default="")),
        ],
    ),
    migrations.CreateModel(
        name="AccessKey",
        fields=[
            ("key_id", models.CharField(max_length=32, primary_key=True, serialize=False)),
            ("created_ms", models.BigIntegerField()),
            ("disabled_ms", models.BigIntegerField(null=True)),
            ("last_used_ms", models.BigIntegerField(null=True)),
            ("user", _key(settings.AUTH_USER_MODEL)),
            ("project", _key("console.project")),
            ("disabled_by", models.CharField(db_default="", default="", max_length=150)),
            ("description", models.CharField(db_default="", default="", max_length=100)),
        ],
    ),
    migrations.CreateModel(
        name="RunValue",
        fields=[
            ("pk", _composite("execution_id", "key")),
            ("key", models.CharField(max_length=64)),
            ("text", models.TextField()),
            ("execution", _key("console.execution", db_constraint=False, db_index=False)),
        ],
    ),
    migrations.CreateModel(
        name="Alias",
        fields=[
            ("id", _number()),
            ("name", models.CharField(max_length=80)),
            ("arn", models.CharField(max_length=340, unique=True)),
            ("description", models.CharField(default="", max_length=256)),
            ("routing", models.TextField()),
            ("created_ms", models.BigIntegerField()),
            ("updated_ms", models.BigIntegerField()),
            ("state_machine", _key("console.statemachine")),
        ],
    ),
    migrations.CreateModel(
        name="Tag",
        fields=[
            ("id", _number()),
            ("arn", models.CharField(max_length=256)),
            ("key", models.CharField(max_length=128)),
            ("value", models.CharField(max_length=256)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(fields=("arn", "key"), name="one_value_per_tag")
            ],
        },
    ),
    migrations.CreateModel(
        name="TaskRow",
        fields=[
            ("pk", _composite("execution_id", "task")),
            ("task", models.IntegerField()),
            ("kind", models.CharField(max_length=10)),
            ("resource", models.CharField(max_length=512)),
            ("service", models.CharField(default="", max_length=80)),
            ("action", models.CharField(default="", max_length=120)),
            ("pattern", models.CharField(default="", max_length=20)),
            ("state", models.CharField(max_length=80)),
            ("input", models.TextField()),
            ("credentials", models.TextField(default="")),
            ("attempt", models.IntegerField(default=0)),
            ("entered_event", models.IntegerField(default=0)),
            ("status", models.CharField(default="scheduled", max_length=10)),
            ("token_hash", models.CharField(max_length=64, unique=True)),
            ("timeout_s", models.IntegerField(null=True)),
            ("heartbeat_s", models.IntegerField(null=True)),
            ("timeout_due_ms", models.BigIntegerField(null=True)),
            ("heartbeat_due_ms", models.BigIntegerField(null=True)),
            ("scheduled_ms", models.BigIntegerField()),
            ("started_ms", models.BigIntegerField(null=True)),
            ("heartbeat_ms", models.BigIntegerField(null=True)),
            ("closed_ms", models.BigIntegerField(null=True)),
            ("worker", models.CharField(default="", max_length=80)),
            ("dispatches", models.IntegerField(default=0)),
            ("execution", _key("console.execution", db_constraint=False, db_index=False)),
            ("job", models.TextField(default="")),
            ("look_due_ms", models.BigIntegerField(null=True)),
            ("looks", models.IntegerField(default=0)),
            ("clock", models.CharField(default="", max_length=16)),
            ("close_due_ms", models.BigIntegerField(null=True)),
            ("losses", models.IntegerField(default=0)),
        ],
        options={
            "indexes": [
                models.Index(fields=["status", "kind", "scheduled_ms"], name="task_to_dispatch"),
                models.Index(
                    condition=models.Q(("started_ms__isnull", False)),
                    fields=["started_ms"],
                    name="task_by_start",
                ),
                models.Index(
                    condition=models.Q(("closed_ms__isnull", False)),
                    fields=["closed_ms"],
                    name="task_by_close",
                ),
                models.Index(
                    condition=models.Q(("timeout_due_ms__isnull", False)),
                    fields=["timeout_due_ms"],
                    name="task_timeout_due",
                ),
                models.Index(
                    condition=models.Q(("heartbeat_due_ms__isnull", False)),
                    fields=["heartbeat_due_ms"],
                    name="task_heartbeat_due",
                ),
                models.Index(
                    condition=models.Q(("look_due_ms__isnull", False)),
                    fields=["look_due_ms"],
                    name="task_look_due",
                ),
                models.Index(
                    condition=models.Q(("kind", "activity")),
                    fields=["resource", "status", "scheduled_ms"],
                    name="task_of_activity",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="Timer",
        fields=[
            ("pk", _composite("execution_id", "name")),
            ("name", models.CharField(max_length=64)),
            ("due_ms", models.BigIntegerField(db_index=True)),
            ("execution", _key("console.execution", db_constraint=False, db_index=False)),
        ],
    ),
    migrations.CreateModel(
        name="Version",
        fields=[
            ("id", _number()),
            ("number", models.IntegerField()),
            ("revision_id", models.CharField(default="", max_length=36)),
            ("role_arn", models.CharField(max_length=256)),
            ("description", models.CharField(default="", max_length=256)),
            ("created_ms", models.BigIntegerField()),
            ("definition", models.ForeignKey("console.definition", on_delete=models.PROTECT)),
            ("state_machine", _key("console.statemachine")),
            ("edited_by", models.TextField(db_default="", default="")),
            ("encryption", models.TextField(null=True)),
            ("logging", models.TextField(null=True)),
            ("tracing", models.TextField(null=True)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(
                    fields=("state_machine", "number"), name="one_version_a_number"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="RunRow",
        fields=[
            (
                "execution",
                models.OneToOneField(
                    "console.execution",
                    on_delete=models.CASCADE,
                    db_constraint=False,
                    primary_key=True,
                    serialize=False,
                ),
            ),
            ("version", models.IntegerField(default=0)),
            ("next_event", models.IntegerField(default=1)),
            ("snapshot", models.TextField(default="")),
            ("ready", models.BooleanField(default=True)),
            ("failures", models.IntegerField(default=0)),
            ("parked", models.TextField(default="")),
            ("children_end", models.BooleanField(default=False)),
        ],
        options={
            "indexes": [
                models.Index(
                    condition=models.Q(("ready", True)), fields=["execution"], name="run_ready"
                ),
                models.Index(
                    condition=models.Q(("children_end", True)),
                    fields=["execution"],
                    name="run_children_end",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="ServerFact",
        fields=[
            ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
            ("value", models.CharField(max_length=200)),
        ],
    ),
    migrations.CreateModel(
        name="MapItem",
        fields=[
            ("pk", _composite("map_run_id", "item_index")),
            ("item_index", models.IntegerField()),
            ("input", models.TextField()),
            ("map_run", _key("console.maprun", db_index=False)),
        ],
    ),
    migrations.CreateModel(
        name="ThrottledMinute",
        fields=[
            ("id", _number()),
            ("state_machine_arn", models.CharField(max_length=256)),
            ("minute_ms", models.BigIntegerField()),
            ("count", models.IntegerField(default=0)),
            ("project", _key("console.project")),
            ("api", models.CharField(default="", max_length=40)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(
                    fields=("project", "state_machine_arn", "api", "minute_ms"),
                    name="one_count_a_minute",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="TokenBucket",
        fields=[
            ("id", _number()),
            ("name", models.CharField(max_length=40)),
            ("tokens", models.FloatField()),
            ("at_ms", models.BigIntegerField()),
            ("project", _key("console.project")),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(fields=("project", "name"), name="one_bucket_a_rate")
            ],
        },
    ),
    migrations.CreateModel(
        name="MetricMinute",
        fields=[
            ("id", _number()),
            ("region", models.CharField(max_length=32)),
            ("metric", models.CharField(max_length=60)),
            ("resource", models.CharField(max_length=512)),
            ("also", models.CharField(default="", max_length=360)),
            ("count", models.BigIntegerField()),
            ("total", models.FloatField()),
            ("least", models.FloatField()),
            ("most", models.FloatField()),
            ("spread", models.TextField(default="")),
            ("minute_ms", models.BigIntegerField()),
            ("project", _key("console.project", db_index=False)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(
                    fields=("project", "region", "metric", "minute_ms", "resource", "also"),
                    name="one_sum_per_minute",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="MetricTotal",
        fields=[
            ("id", _number()),
            ("region", models.CharField(max_length=32)),
            ("metric", models.CharField(max_length=60)),
            ("resource", models.CharField(max_length=512)),
            ("also", models.CharField(default="", max_length=360)),
            ("count", models.BigIntegerField()),
            ("total", models.FloatField()),
            ("least", models.FloatField()),
            ("most", models.FloatField()),
            ("spread", models.TextField(default="")),
            ("project", _key("console.project", db_index=False)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(
                    fields=("project", "region", "metric", "resource", "also"), name="one_total"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="Price",
        fields=[
            ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
            ("dollars", models.DecimalField(decimal_places=12, max_digits=20)),
            ("as_of", models.CharField(max_length=10)),
            ("source", models.CharField(max_length=200)),
        ],
    ),
    migrations.CreateModel(
        name="Worker",
        fields=[
            ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
            ("host", models.CharField(max_length=120)),
            ("pid", models.IntegerField()),
            ("version", models.CharField(max_length=20)),
            ("started_ms", models.BigIntegerField()),
            ("lease_until_ms", models.BigIntegerField()),
            ("steps", models.BigIntegerField(default=0)),
            ("fenced", models.BigIntegerField(default=0)),
            ("problem", models.CharField(db_default="", default="", max_length=200)),
        ],
        options={
            "indexes": [models.Index(fields=["lease_until_ms"], name="worker_by_lease")],
        },
    ),
    migrations.CreateModel(
        name="EventRule",
        fields=[
            ("id", _number()),
            ("region", models.CharField(max_length=32)),
            ("name", models.CharField(max_length=64)),
            ("arn", models.CharField(max_length=256, unique=True)),
            ("description", models.CharField(default="", max_length=512)),
            ("pattern", models.TextField(default="")),
            ("schedule", models.CharField(default="", max_length=256)),
            ("timezone", models.CharField(default="UTC", max_length=64)),
            ("role_arn", models.CharField(default="", max_length=256)),
            ("state", models.CharField(default="ENABLED", max_length=8)),
            ("next_ms", models.BigIntegerField(db_index=True, null=True)),
            ("created_by", models.CharField(default="", max_length=150)),
            ("created_ms", models.BigIntegerField()),
            ("project", _key("console.project", db_index=False)),
            ("edited_by", models.TextField(db_default="", default="")),
            ("after_completion", models.CharField(db_default="NONE", default="NONE", max_length=6)),
            ("client_token", models.CharField(db_default="", default="", max_length=64)),
            ("due_ms", models.BigIntegerField(db_index=True, null=True)),
            ("end_ms", models.BigIntegerField(null=True)),
            ("kms_key_arn", models.CharField(db_default="", default="", max_length=2048)),
            ("schedule_group", models.CharField(db_default="", default="", max_length=64)),
            ("schedule_name", models.CharField(db_default="", default="", max_length=64)),
            ("start_ms", models.BigIntegerField(null=True)),
            ("updated_ms", models.BigIntegerField(null=True)),
            ("window_minutes", models.IntegerField(db_default=0, default=0)),
        ],
        options={
            "indexes": [
                models.Index(
                    fields=["project", "region", "schedule_group", "schedule_name"],
                    name="schedule_by_group",
                )
            ],
            "constraints": [
                models.UniqueConstraint(
                    fields=("project", "region", "name"), name="one_rule_a_name"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="EventTarget",
        fields=[
            ("id", _number()),
            ("target_id", models.CharField(max_length=64)),
            ("address", models.CharField(max_length=1600)),
            ("settings", models.TextField(default="{}")),
            ("rule", _key("console.eventrule", related_name="targets")),
            ("timeouts", models.IntegerField(db_default=0, default=0)),
            ("paused_until_ms", models.BigIntegerField(null=True)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(fields=("rule", "target_id"), name="one_target_an_id")
            ],
        },
    ),
    migrations.CreateModel(
        name="OutboxEvent",
        fields=[
            ("id", _number()),
            ("event_id", models.CharField(max_length=36, unique=True)),
            ("region", models.CharField(max_length=32)),
            ("about", models.CharField(max_length=512)),
            ("body", models.TextField()),
            ("at_ms", models.BigIntegerField(db_index=True)),
            ("routed", models.BooleanField(default=False)),
            ("project", _key("console.project")),
            ("sent_by", models.CharField(db_default="", default="", max_length=150)),
        ],
        options={
            "indexes": [
                models.Index(
                    condition=models.Q(("routed", False)), fields=["id"], name="event_to_route"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="Delivery",
        fields=[
            ("id", _number()),
            ("status", models.CharField(default="waiting", max_length=9)),
            ("attempts", models.IntegerField(default=0)),
            ("next_ms", models.BigIntegerField()),
            ("last_error", models.TextField(default="")),
            ("created_ms", models.BigIntegerField()),
            ("ended_ms", models.BigIntegerField(null=True)),
            ("project", _key("console.project", db_index=False)),
            ("target", _key("console.eventtarget")),
            ("event", _key("console.outboxevent", db_index=False, related_name="deliveries")),
        ],
        options={
            "indexes": [
                models.Index(fields=["status", "next_ms"], name="delivery_due"),
                models.Index(fields=["project", "status", "-id"], name="delivery_by_project"),
                models.Index(
                    condition=models.Q(("status", "waiting")),
                    fields=["target", "next_ms"],
                    name="delivery_of_target",
                ),
            ],
            "constraints": [
                models.UniqueConstraint(fields=("event", "target"), name="one_delivery_a_target")
            ],
        },
    ),
    migrations.CreateModel(
        name="StartLink",
        fields=[
            ("id", _number()),
            ("name", models.CharField(max_length=64)),
            ("secret_hash", models.CharField(max_length=64, unique=True)),
            ("created_by", models.CharField(max_length=150)),
            ("created_ms", models.BigIntegerField()),
            ("used_ms", models.BigIntegerField(null=True)),
            ("revoked_ms", models.BigIntegerField(null=True)),
            ("machine", _key("console.statemachine", related_name="start_links")),
            ("membership", models.BigIntegerField(null=True)),
        ],
    ),
    migrations.CreateModel(
        name="BulkJob",
        fields=[
            ("id", _number()),
            ("project", _key("console.project")),
            ("action", models.CharField(max_length=10)),
            ("actor", models.CharField(default="", max_length=150)),
            ("status", models.CharField(default="RUNNING", max_length=8)),
            ("asked", models.TextField(default="")),
            ("total", models.IntegerField()),
            ("created_ms", models.BigIntegerField()),
            ("ended_ms", models.BigIntegerField(null=True)),
            ("cause", models.TextField(db_default="", default="")),
            ("error", models.CharField(db_default="", default="", max_length=256)),
        ],
        options={
            "indexes": [
                models.Index(
                    condition=models.Q(("status", "RUNNING")),
                    fields=["id"],
                    name="bulk_job_running",
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="BulkItem",
        fields=[
            ("pk", _composite("job_id", "position")),
            ("job", _key("console.bulkjob", db_index=False)),
            ("position", models.IntegerField()),
            ("number", models.BigIntegerField()),
            ("arn", models.CharField(max_length=512)),
            ("started_by", models.CharField(default="", max_length=150)),
            ("status", models.CharField(default="waiting", max_length=8)),
            ("error", models.CharField(default="", max_length=80)),
            ("words", models.TextField(default="")),
            ("result", models.CharField(default="", max_length=512)),
            ("at_ms", models.BigIntegerField(null=True)),
        ],
        options={
            "indexes": [
                models.Index(fields=["job", "status", "position"], name="bulk_item_by_status")
            ],
        },
    ),
    migrations.CreateModel(
        name="LogGroup",
        fields=[
            ("id", _number()),
            ("region", models.CharField(max_length=32)),
            ("name", models.CharField(max_length=512)),
            ("created_ms", models.BigIntegerField()),
            ("deleted_ms", models.BigIntegerField(null=True)),
            ("project", _key("console.project", db_index=False)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(
                    fields=("project", "region", "name"), name="one_group_a_name"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="LogRoute",
        fields=[
            ("id", _number()),
            ("region", models.CharField(max_length=32)),
            ("machine_arn", models.CharField(max_length=256)),
            ("since_ms", models.BigIntegerField()),
            ("level", models.CharField(default="OFF", max_length=5)),
            ("with_data", models.BooleanField(default=False)),
            ("group", models.CharField(default="", max_length=512)),
            ("project", _key("console.project", db_index=False)),
        ],
        options={
            "indexes": [models.Index(fields=["project", "group"], name="route_by_group")],
            "constraints": [
                models.UniqueConstraint(
                    fields=("machine_arn", "since_ms"), name="one_route_a_moment"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="SavedView",
        fields=[
            ("id", _number()),
            ("name", models.CharField(max_length=80)),
            ("query", models.TextField()),
            ("default_of", models.CharField(default="", max_length=80)),
            ("saved_by", models.CharField(max_length=150)),
            ("saved_ms", models.BigIntegerField()),
            ("project", _key("console.project")),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(fields=("project", "name"), name="one_view_per_name"),
                models.UniqueConstraint(
                    condition=models.Q(("default_of", ""), _negated=True),
                    fields=("project", "default_of"),
                    name="one_default_per_machine",
                ),
            ],
        },
    ),
    migrations.CreateModel(
        name="LoginAttempts",
        fields=[
            ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
            ("count", models.IntegerField()),
            ("until_ms", models.BigIntegerField(db_index=True)),
        ],
    ),
    migrations.CreateModel(
        name="Invitation",
        fields=[
            ("id", _number()),
            ("token_hash", models.CharField(max_length=64, unique=True)),
            ("name", models.CharField(max_length=150)),
            (
                "role",
                models.CharField(
                    choices=[
                        ("viewer", "Viewer"),
                        ("operator", "Operator"),
                        ("editor", "Editor"),
                        ("owner", "Owner"),
                    ],
                    max_length=10,
                ),
            ),
            ("made_by", models.CharField(max_length=150)),
            ("made_ms", models.BigIntegerField()),
            ("expires_ms", models.BigIntegerField()),
            ("used_ms", models.BigIntegerField(null=True)),
            ("project", _key("console.project")),
        ],
    ),
    migrations.CreateModel(
        name="ExecutionNote",
        fields=[
            (
                "execution",
                models.OneToOneField(
                    "console.execution",
                    on_delete=models.CASCADE,
                    primary_key=True,
                    related_name="note",
                    serialize=False,
                ),
            ),
            ("noted_by", models.CharField(default="", max_length=150)),
            ("noted_ms", models.BigIntegerField(null=True)),
            ("text", models.TextField(db_column="note", default="")),
            ("assignee", models.CharField(db_column="looker", default="", max_length=150)),
            ("assigned_ms", models.BigIntegerField(db_column="looking_ms", null=True)),
        ],
        options={
            "db_table": "console_remark",
        },
    ),
    migrations.CreateModel(
        name="ScheduleGroup",
        fields=[
            ("id", _number()),
            ("region", models.CharField(max_length=32)),
            ("name", models.CharField(max_length=64)),
            ("arn", models.CharField(max_length=256, unique=True)),
            ("created_ms", models.BigIntegerField()),
            ("project", _key("console.project", db_index=False)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(
                    fields=("project", "region", "name"), name="one_schedule_group_a_name"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="DefinitionDraft",
        fields=[
            ("id", _number()),
            ("machine_arn", models.CharField(default="", max_length=256)),
            ("text", models.TextField()),
            ("revision", models.CharField(default="", max_length=80)),
            ("saved_ms", models.BigIntegerField()),
            ("project", _key("console.project")),
            ("user", _key(settings.AUTH_USER_MODEL)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(
                    fields=("project", "user", "machine_arn"), name="one_draft_a_person_and_machine"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="MachineRevision",
        fields=[
            ("id", _number()),
            ("number", models.IntegerField()),
            ("revision_id", models.CharField(default="", max_length=36)),
            ("role_arn", models.CharField(max_length=256)),
            ("note", models.CharField(default="", max_length=500)),
            ("saved_by", models.CharField(default="", max_length=150)),
            ("saved_ms", models.BigIntegerField()),
            ("definition", models.ForeignKey("console.definition", on_delete=models.PROTECT)),
            (
                "state_machine",
                _key("console.statemachine", db_constraint=False, related_name="revisions"),
            ),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(
                    fields=("state_machine", "number"), name="one_revision_a_number"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="Alarm",
        fields=[
            ("id", _number()),
            ("region", models.CharField(max_length=32)),
            ("name", models.CharField(max_length=255)),
            ("arn", models.CharField(max_length=400, unique=True)),
            ("description", models.CharField(default="", max_length=1024)),
            ("kind", models.CharField(default=AlarmKind["METRIC"], max_length=16)),
            ("period_s", models.IntegerField()),
            ("threshold", models.FloatField(default=0)),
            ("minimum", models.IntegerField(default=1)),
            ("state_name", models.CharField(default="", max_length=80)),
            ("metric", models.CharField(default="", max_length=64)),
            ("resource", models.CharField(default="", max_length=512)),
            ("also", models.CharField(default="", max_length=400)),
            ("dimensions", models.TextField(default="[]")),
            ("statistic", models.CharField(default="", max_length=16)),
            ("unit", models.CharField(default="", max_length=32)),
            ("comparison", models.CharField(default=AlarmComparison["ABOVE"], max_length=32)),
            ("periods", models.IntegerField(default=1)),
            ("datapoints", models.IntegerField(default=1)),
            ("missing", models.CharField(default=MissingData["MISSING"], max_length=16)),
            ("enabled", models.BooleanField(default=True)),
            ("state", models.CharField(default=AlarmState["INSUFFICIENT_DATA"], max_length=20)),
            ("reason", models.TextField(default="")),
            ("reason_data", models.TextField(default="")),
            ("state_ms", models.BigIntegerField()),
            ("created_ms", models.BigIntegerField()),
            ("updated_ms", models.BigIntegerField()),
            ("created_by", models.CharField(default="", max_length=150)),
            ("machine", _key("console.statemachine", null=True)),
            ("project", _key("console.project", db_index=False)),
        ],
        options={
            "constraints": [
                models.UniqueConstraint(
                    fields=("project", "region", "name"), name="one_alarm_a_name"
                )
            ],
        },
    ),
    migrations.CreateModel(
        name="ReadinessMinute",
        fields=[
            ("minute_ms", models.BigIntegerField(primary_key=True, serialize=False)),
            ("looks", models.IntegerField()),
            ("ready", models.IntegerField()),
            ("reason", models.CharField(default="", max_length=200)),
        ],
    ),
    migrations.CreateModel(
        name="FunctionLog",
        fields=[
            ("id", _number()),
            ("task", models.IntegerField()),
            ("function", models.CharField(max_length=140)),
            ("request", models.CharField(max_length=36)),
            ("started_ms", models.BigIntegerField(db_index=True)),
            ("duration_ms", models.FloatField()),
            ("init_ms", models.FloatField(null=True)),
            ("memory_mb", models.IntegerField()),
            ("memory_limit_mb", models.IntegerField()),
            ("error", models.CharField(default="", max_length=256)),
            ("output", models.TextField(default="")),
            ("execution", _key("console.execution", db_constraint=False, db_index=False)),
        ],
        options={
            "indexes": [
                models.Index(fields=["execution", "task"], name="function_log_of_task"),
                models.Index(fields=["function", "started_ms"], name="function_log_by_function"),
            ],
        },
    ),
    migrations.CreateModel(
        name="AlarmChange",
        fields=[
            ("id", _number()),
            ("at_ms", models.BigIntegerField()),
            ("before", models.CharField(max_length=20)),
            ("state", models.CharField(max_length=20)),
            ("reason", models.TextField(default="")),
            ("actor", models.CharField(default="", max_length=150)),
            ("alarm", _key("console.alarm")),
        ],
    ),
    migrations.CreateModel(
        name="Gist",
        fields=[
            (
                "execution",
                models.OneToOneField(
                    "console.execution",
                    on_delete=models.CASCADE,
                    db_constraint=False,
                    primary_key=True,
                    serialize=False,
                ),
            ),
            ("last", models.IntegerField()),
            ("body", models.BinaryField()),
        ],
    ),
]


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("console", "0001_initial"),
        ("console", "0002_value_keys"),
        ("console", "0003_server_fact"),
        ("console", "0004_task_jobs"),
        ("console", "0005_map_items"),
        ("console", "0006_fewer_indexes"),
        ("console", "0007_test_case"),
        ("console", "0008_quotas"),
        ("console", "0009_redrive"),
        ("console", "0016_metrics"),
        ("console", "0017_workers"),
        ("console", "0018_events"),
        ("console", "0019_lists"),
        ("console", "0020_tasks"),
        ("console", "0021_logs"),
        ("console", "0022_import"),
        ("console", "0023_losses"),
        ("console", "0024_throttled_api"),
        ("console", "0024_masked"),
        ("console", "0025_columns"),
        ("console", "0026_views"),
        ("console", "0027_remarks"),
        ("console", "0028_audit_target"),
        ("console", "0029_gist"),
        ("console", "0030_error_names"),
        ("console", "0031_key_disabled_by"),
        ("console", "0032_login_attempts"),
        ("console", "0033_invitations"),
        ("console", "0034_execution_rights"),
        ("console", "0035_fill_editors"),
        ("console", "0036_children_of_execution"),
        ("console", "0037_no_history_digest"),
        ("console", "0038_execution_note"),
        ("console", "0039_schedules"),
        ("console", "0040_fewer_constraints"),
        ("console", "0041_version_settings"),
        ("console", "0042_machine_revisions"),
        ("console", "0043_alarms"),
        ("console", "0044_operations"),
        ("console", "0045_function_logs"),
        ("console", "0046_narrower_indexes"),
        ("console", "0047_audit_by_person"),
        ("console", "0048_alarm_changes"),
        ("console", "0049_stop_reasons_and_key_descriptions"),
        ("console", "0050_executions_by_time"),
        ("console", "0051_redrive_tokens"),
        ("console", "0052_express_children"),
        ("console", "0053_worker_problem"),
        ("console", "0054_silent_targets"),
        ("console", "0055_deliveries_of_target"),
        ("console", "0056_start_link_members"),
        ("console", "0057_event_senders"),
    ]
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        CreateModels(_MODELS, _SQLITE_CONSTRAINTS),
        migrations.RunPython(tune_postgresql, migrations.RunPython.noop),
        # The table stays, as 0037 left it.
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="Gist")],
        ),
    ]

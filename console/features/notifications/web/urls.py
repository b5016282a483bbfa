"""URLs of notifications: event rules, schedules, targets, deliveries and start links."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule
from console.web.core.addresses import MACHINE

_SCHEDULE = "schedules/<str:schedule_group>/<str:schedule_name>/"

dead_letter_views = ViewModule("console.features.notifications.web.dead_letter_views")
rule_list_views = ViewModule("console.features.notifications.web.rule_list_views")
rule_views = ViewModule("console.features.notifications.web.rule_views")
schedule_pause_api = ViewModule("console.features.notifications.web.schedule_pause_api")
schedule_pause_views = ViewModule("console.features.notifications.web.schedule_pause_views")
schedule_views = ViewModule("console.features.notifications.web.schedule_views")
trigger_views = ViewModule("console.features.notifications.web.trigger_views")

urlpatterns = [
    path(f"{MACHINE}triggers/", trigger_views.triggers_page, name="triggers"),
    path(
        f"{MACHINE}triggers/<number:number>/revoke/",
        trigger_views.revoke_start_link,
        name="start-link-revoke",
    ),
    path("start/<str:machine_name>/<str:secret>", trigger_views.start_by_link, name="start-link"),
    path("notifications/", rule_list_views.notifications_page, name="notifications"),
    path(
        "notifications/<number:number>/again/",
        dead_letter_views.send_delivery_again,
        name="send-again",
    ),
    path(
        "notifications/rules/<number:number>/again/",
        dead_letter_views.send_all_again,
        name="send-all-again",
    ),
    path(
        "notifications/rules/<number:number>/delete/",
        dead_letter_views.delete_all,
        name="dead-letters-delete",
    ),
    path("schedules/", rule_list_views.schedules_page, name="schedules"),
    path("schedules/pause/", schedule_pause_views.pause_page, name="schedules-pause"),
    path("schedules/resume/", schedule_pause_views.resume_page, name="schedules-resume"),
    path("api/schedules/pause", schedule_pause_api.pause, name="api-schedules-pause"),
    path("api/schedules/resume", schedule_pause_api.resume, name="api-schedules-resume"),
    path("api/schedules/paused", schedule_pause_api.paused, name="api-schedules-paused"),
    path("schedules/times/", schedule_views.schedule_times, name="schedule-times"),
    path(f"{_SCHEDULE}", schedule_views.schedule_page, name="schedule"),
    path(f"{_SCHEDULE}switch/", schedule_views.switch_schedule, name="schedule-switch"),
    path(f"{_SCHEDULE}run/", schedule_views.run_schedule, name="schedule-run"),
    path(f"{_SCHEDULE}delete/", schedule_views.delete_schedule, name="schedule-delete"),
    path("rules/<str:rule_name>/", rule_views.rule_page, name="rule"),
    path("rules/<str:rule_name>/switch/", rule_views.switch_rule, name="rule-switch"),
    path("rules/<str:rule_name>/run/", rule_views.run_rule, name="rule-run"),
    path("rules/<str:rule_name>/delete/", rule_views.delete_rule, name="rule-delete"),
    path("rules/<str:rule_name>/targets/", rule_views.add_target, name="target-add"),
    path("rules/<str:rule_name>/targets/remove/", rule_views.remove_target, name="target-remove"),
    path("rules/<str:rule_name>/targets/test/", rule_views.test_target, name="target-test"),
]

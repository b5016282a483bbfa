"""URLs of a person's own account: sessions, mail address, password reset."""

from __future__ import annotations

from django.urls import path

from console.feature import ViewModule

mail_views = ViewModule("console.features.account.mail_views")
reset_views = ViewModule("console.features.account.reset_views")
second_factor_views = ViewModule("console.features.account.second_factor_views")
views = ViewModule("console.features.account.views")

urlpatterns = [
    path("account/", views.account_page, name="account"),
    path("account/sessions/end/", views.end_other_sessions, name="sessions-end"),
    path("account/sessions/<number:number>/end/", views.end_session, name="session-end"),
    path("account/mail/", mail_views.put_address, name="mail-address-change"),
    path("account/mail/<str:token>/", mail_views.confirm_address, name="mail-address"),
    path("password-reset/", reset_views.reset_request_page, name="password-reset"),
    path(
        "password-reset/<str:uidb64>/<str:token>/",
        reset_views.new_password_page,
        name="password-reset-link",
    ),
    path("account/second-factor/", second_factor_views.second_factor_page, name="second-factor"),
    path("second-step/", second_factor_views.second_step_page, name="second-step"),
    path("members/second-factor/", second_factor_views.put_rule, name="second-factor-rule"),
]

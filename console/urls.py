"""The root URL configuration of Django: the URLs of all pages."""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [path("", include("console.web.urls"))]

handler400 = "console.web.core.error_views.bad_request"
handler403 = "console.web.core.error_views.forbidden"
handler404 = "console.web.core.error_views.not_found"
handler500 = "console.web.core.error_views.server_error"

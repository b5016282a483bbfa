"""Which page stands where?"""

from __future__ import annotations

from django.urls import include, path

urlpatterns = [path("", include("console.web.urls"))]

handler400 = "console.web.views.errors.bad_request"
handler403 = "console.web.views.errors.forbidden"
handler404 = "console.web.views.errors.not_found"
handler500 = "console.web.views.errors.server_error"

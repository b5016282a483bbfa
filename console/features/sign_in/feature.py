"""Declare the feature: sign-in by OpenID Connect, with roles by groups, or by a proxy's header."""

from console.feature import Feature, Hook

FEATURE = Feature(
    name="sign_in",
    urls="console.features.sign_in.urls",
    pages={
        "sign-in": {"GET": ("PutGroupRole",), "POST": ("PutGroupRole", "RemoveGroupRole")},
        "provider": {"GET": ("anybody",)},
        "provider-callback": {"GET": ("anybody",)},
        "provider-logout": {"POST": ("anybody",)},  # the signature of its token is the right
    },
    rights={"administrator": ("PutGroupRole", "RemoveGroupRole")},
    jobs="console.features.sign_in.jobs",
    hooks={
        Hook.ACCOUNT_PAUSED: "console.features.sign_in.following.is_paused",
        Hook.PAGE_REQUEST: "console.features.sign_in.ways.refuse_unconfirmed",
        Hook.PROVIDER_ACCOUNTS: "console.features.sign_in.ways.find_provider_accounts",
        Hook.SIGN_IN_WAYS: "console.features.sign_in.ways.list_ways",
    },
)

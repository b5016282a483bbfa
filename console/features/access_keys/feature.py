"""Declare the feature: access keys, their limits and rotation, and service accounts."""

from console.feature import Feature, Hook, Subcommand

FEATURE = Feature(
    name="access_keys",
    urls="console.features.access_keys.urls",
    pages={
        "keys": {"GET": ("ViewPages",), "POST": ("CreateAccessKey",)},
        "key": {"POST": ("UpdateAccessKey",)},
        "key-limits": {"GET": ("CreateAccessKey",), "POST": ("CreateAccessKey",)},
        "key-rotate": {"POST": ("CreateAccessKey",)},
        "service-accounts": {"GET": ("PutMember",), "POST": ("PutMember",)},
    },
    hooks={
        Hook.MEMBER_REMOVED: "console.features.access_keys.accounts.forget_account",
        Hook.OVERVIEW: "console.features.access_keys.expiry.overview_context",
    },
    jobs="console.features.access_keys.jobs",
    commands={
        "key": Subcommand("People", "create, list, rotate and delete access keys"),
        "service_account": Subcommand("People", "create, list and delete programs of a project"),
    },
)

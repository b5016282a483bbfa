"""Declare the feature: service accounts, key rotation, and warnings before a key expires."""

from console.feature import Feature, Hook, Subcommand

FEATURE = Feature(
    name="access_keys",
    urls="console.features.access_keys.urls",
    pages={
        "key-limits": {"GET": ("CreateAccessKey",), "POST": ("CreateAccessKey",)},
        "key-rotate": {"POST": ("CreateAccessKey",)},
        "service-accounts": {"GET": ("PutMember",), "POST": ("PutMember",)},
    },
    hooks={
        Hook.KEY_LIMITS: "console.features.access_keys.limits.change_limits",
        Hook.KEY_ROTATION: "console.features.access_keys.rotation.rotate_key",
        Hook.MEMBER_REMOVED: "console.features.access_keys.accounts.forget_account",
        Hook.OVERVIEW: "console.features.access_keys.expiry.overview_context",
    },
    jobs="console.features.access_keys.jobs",
    commands={
        "service_account": Subcommand("People", "create, list and delete programs of a project"),
    },
)

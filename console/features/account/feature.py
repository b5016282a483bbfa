"""Declare the feature: a person's own account, with sessions, second factor, password by mail."""

from console.feature import Feature, Hook, Subcommand

FEATURE = Feature(
    name="account",
    urls="console.features.account.urls",
    pages={
        "account": {"GET": ("signed in",)},
        "session-end": {"POST": ("signed in",)},
        "sessions-end": {"POST": ("signed in",)},
        "mail-address-change": {"POST": ("signed in",)},
        "mail-address": {"GET": ("signed in",), "POST": ("signed in",)},
        "password-reset": {"GET": ("anybody",), "POST": ("anybody",)},
        "password-reset-link": {"GET": ("anybody",), "POST": ("anybody",)},
        "second-factor": {"GET": ("signed in",), "POST": ("signed in",)},
        "second-step": {"GET": ("anybody",), "POST": ("anybody",)},
        "second-factor-rule": {"POST": ("RequireSecondFactor",)},
    },
    rights={"owner": ("RequireSecondFactor",)},
    jobs="console.features.account.jobs",
    hooks={
        Hook.ACCOUNT_CLOSED: "console.features.account.closing.forget_closed_account",
        Hook.LOST_PASSWORD: "console.features.account.mails.offers_reset",
        Hook.MEMBERSHIP_ROWS: "console.features.account.second_factor.add_rule",
        Hook.MEMBERS_PAGE: "console.features.account.second_factor_views.describe_members",
        Hook.SECOND_STEP: "console.features.account.second_step.ask_second_factor",
        Hook.PAGE_REQUEST: "console.features.account.requests.look_at",
    },
    commands={
        "reset_second_factor": Subcommand("People", "take somebody's second factor away"),
    },
)

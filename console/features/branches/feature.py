"""Declare the feature: temporary copies of a project for branches of a git repository."""

from console.feature import Feature, Hook, Subcommand

_CALLS = ("key", "failures", "delete", "machines", "deploy")

FEATURE = Feature(
    name="branches",
    urls="console.features.branches.urls",
    pages={
        "branch-delete": {"POST": ("signed in",)},  # the view asks for the role in the parent
        # signed calls: the views say who may make them
        "api-branches": {"GET": ("anybody",), "POST": ("anybody",)},
        **{f"api-branch-{act}": {"POST": ("anybody",)} for act in _CALLS},
    },
    rights={
        "viewer": ("ListBranches",),
        "editor": ("PutBranch", "DeleteBranch"),
    },
    jobs="console.features.branches.jobs",
    hooks={Hook.PROJECT_BRANCHES: "console.features.branches.views.shown_branches"},
    commands={
        "branch": Subcommand(
            "Talk to a server",
            "list and delete branches of a project, and run tests in one",
            "console.features.branches.cli",
        ),
    },
    needs=("projects",),
)

"""Projects: list the reader's projects; create, rename, archive and delete projects."""

from console.feature import Feature, Subcommand

FEATURE = Feature(
    name="projects",
    urls="console.features.projects.urls",
    pages={
        "projects": {"GET": ("signed in",)},
        "project-create": {"POST": ("CreateProject",)},
        "project-rename": {"POST": ("RenameProject",)},
        "project-archive": {"POST": ("ArchiveProject",)},
        "project-unarchive": {"POST": ("UnarchiveProject",)},
        "project-delete": {"POST": ("DeleteProject",)},
        # signed calls: the views check the caller
        "api-projects": {"GET": ("anybody",), "POST": ("anybody",)},
        "api-project": {"GET": ("anybody",)},
        **{
            f"api-project-{act}": {"POST": ("anybody",)}
            for act in ("rename", "archive", "unarchive", "delete")
        },
    },
    rights={
        "administrator": (
            "ListProjects",
            "CreateProject",
            "RenameProject",
            "ArchiveProject",
            "UnarchiveProject",
            "DeleteProject",
        )
    },
    jobs="console.features.projects.jobs",
    commands={
        "project": Subcommand("People", "create, list and rename projects"),
    },
)

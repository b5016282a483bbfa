"""Projects: an overview of one's own, and creating and renaming those of a server."""

from console.feature import Feature

FEATURE = Feature(
    name="projects",
    urls="console.features.projects.urls",
    pages={
        "projects": {"GET": ("signed in",)},
        "project-create": {"POST": ("CreateProject",)},
        "project-rename": {"POST": ("RenameProject",)},
    },
    rights={"administrator": ("ListProjects", "CreateProject", "RenameProject")},
)

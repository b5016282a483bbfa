"""Declare the feature: compare the policies of a state machine's role with its calls."""

from console.feature import Feature, Hook, Subcommand

FEATURE = Feature(
    name="roles",
    urls="console.features.roles.urls",
    pages={"role": {"GET": ("ViewPages",), "POST": ("PutProjectSetting", "RemoveProjectSetting")}},
    hooks={
        Hook.DEPLOYMENT_CHECK: "console.features.roles.files.project_checks.check_deployment",
        Hook.FILE_OPTIONS: "console.features.roles.files.options.add_role_arguments",
        Hook.LINT_CHECK: "console.features.roles.files.project_checks.check_files",
        Hook.LISTED_ROLE: "console.features.roles.evaluation.readable_role",
        Hook.ROLE_ENFORCED: "console.features.roles.role_rehearsal.enforces",
        Hook.TASK_REFUSAL: "console.features.roles.role_rehearsal.task_refusal",
        Hook.TEMPLATE_ROLE: "console.features.roles.files.template_roles.template_role",
        Hook.TERRAFORM_ROLE: "console.features.roles.files.terraform_roles.terraform_role",
    },
    commands={
        "role": Subcommand(
            "Definitions",
            "print the least policy of a role, or rehearse the role",
            "console.features.roles.cli",
        ),
    },
)

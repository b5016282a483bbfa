"""The import of executions: files of the AWS CLI, and executions that are fetched from AWS."""

"""A client that shares no code with boto3: AWS's SDK for JavaScript, from npm."""

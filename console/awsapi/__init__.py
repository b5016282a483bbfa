"""Serve AWS's APIs of Step Functions, CloudWatch, EventBridge and CloudWatch Logs.

Theory of operation
===================

An AWS SDK sends ``POST /`` with a signature and a body in JSON or CBOR. This package turns those
bytes into a call of one operation, and the operation's result into the bytes of the answer. Django
has no part in it: no cookies, sessions, middleware or URL patterns.

From bytes to an answer
-----------------------

1. ``asgi.aws`` collects headers (lower-case name -> values in their order) and the body. A body
   beyond the limit is refused while it arrives, so a sender cannot fill the memory.
2. ``services.wanted`` finds service and action: in JSON by ``X-Amz-Target``, in CBOR by the path.
3. ``asgi._check_request`` refuses requests with parts that the signature does not cover or that
   AWS's SDKs do not send: another host, a query, a compressed body, another content type.
4. ``sigv4.verify`` checks the signature; ``access.principal_of_key`` returns the person behind the
   key, their project and their role.
5. ``access.authorize`` looks the action up in the table of rights. An action that is not in the
   table is refused for everybody. A key may have a scope: then the body is parsed first, because it
   names the state machine (``key_resources``).
6. Only now is the body parsed otherwise. ``shapes.check`` compares it with botocore's service
   model, and words each violation as AWS does.
7. The handler (``operations``) gets a ``Call`` and returns one of three things: the members of the
   answer, a ``Change`` (still to be committed), or a ``LongPoll`` (an answer that does
   not exist yet, as for GetActivityTask). The last two hold no thread while they wait.
8. ``asgi.aws`` encodes the result, or the error as ``Service.error_answer`` describes it.

Steps 3 to 7 run on a pool thread (``threads``), or in the thread of the event loop for short
operations on an embedded database. Tasks of this server's own executions enter at step 5 by
``in_process``: the same checks in the same order, without HTTP and signature.

Signatures
----------

A client proves that it has the secret of its key without sending it. Both sides build the same
text, the *canonical request*::

    POST                                   method
    /                                      path; CBOR: /service/NAME/operation/ACTION
                                           query, always empty here
    host:yard.example.com                  signed headers: sorted, lower-case names,
    x-amz-date:20260102T030405Z            blanks folded
    x-amz-target:AWSStepFunctions.StartExecution

    host;x-amz-date;x-amz-target           their names
    e3b0c442...                            SHA-256 of the body

The *string to sign* is the algorithm, the date, the scope (day/region/service/aws4_request) and the
SHA-256 of that text. The signing key comes from the secret by one HMAC for each part of the scope,
so a key that leaks from a log is good for one day, region and service.

* **The body's hash is computed here**, from the bytes that arrived; ``x-amz-content-sha256`` is
  ignored. It is checked before the body is parsed, so unsigned bodies reach no parser.
* **Host, date and action must be signed.** A request that somebody recorded would otherwise be good
  for another action, for another server, or forever.
* **Clocks** may differ by five minutes (``sigv4.MAX_SKEW_S``), as with AWS. Within that time a
  recorded request can be sent again: operations that must not happen twice have names or tokens.
* **Presigned addresses** (the signature in the query) are refused: they last up to a week and stand
  in logs of proxies. So are unsigned and chunked payloads and the asymmetric ``SigV4A``.
* **Session tokens** are refused: this server issues none.
* **Timing**: for an unknown key the same work is done with the secret it would have, and signatures
  are compared in constant time. So the duration of a refusal reveals nothing, and neither do the
  signing keys that ``sigv4`` caches after a valid signature.

Secrets are not stored: ``access.secret_for`` derives a secret from the key's id and the master
secret.
"""

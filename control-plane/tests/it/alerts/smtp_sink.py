"""A mail server on a free port of 127.0.0.1, for tests.

smtp_sink.py plain|starttls|tls [CERTIFICATE KEY] [NAME PASSWORD]

Prints `{"port": N}`, then a JSON object a line for each message that it took. Recipients whose name
begins with "gone" are refused for good, with "later" for now.
"""

import asyncio
import email
import email.policy
import json
import logging
import ssl
import sys
import warnings

from aiosmtpd.smtp import SMTP, AuthResult


def tell(what):
    print(json.dumps(what), flush=True)


class Sink:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("gone"):
            return "550 canary-answer no such mailbox"
        if address.startswith("later"):
            return "450 canary-answer not now"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        parts = {part.get_content_type(): part.get_content()
                 for part in message.walk() if not part.is_multipart()}
        tell({
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "headers": {name.lower(): str(value) for name, value in message.items()},
            "text": parts.get("text/plain"),
            "html": parts.get("text/html"),
            "tls": session.ssl is not None
                   or server.transport.get_extra_info("ssl_object") is not None,
            "login": (session.auth_data.login.decode() if session.authenticated else None),
            "longest_line": max(len(line) for line in envelope.content.split(b"\r\n")),
        })
        return "250 OK"


async def main(mode, *rest):
    context = None
    if mode in ("starttls", "tls"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(rest[0], rest[1])
        rest = rest[2:]
    options = {"hostname": "sink.example"}
    if mode == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
    if rest:
        name, password = rest[0].encode(), rest[1].encode()

        def known(server, session, envelope, mechanism, data):
            if (data.login, data.password) == (name, password):
                return AuthResult(success=True, auth_data=data)
            return AuthResult(success=False, handled=False)

        options |= {"authenticator": known, "auth_required": True,
                    "auth_require_tls": mode == "starttls"}
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: SMTP(Sink(), **options), "127.0.0.1", 0,
        ssl=context if mode == "tls" else None)
    tell({"port": server.sockets[0].getsockname()[1]})
    await server.serve_forever()


# A password without STARTTLS is fine here: with "tls" the connection is encrypted from its first byte.
warnings.simplefilter("ignore")
logging.disable()
asyncio.run(main(*sys.argv[1:]))

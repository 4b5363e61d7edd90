"""Discord from end to end over TLS: the public addresses, unchanged, and a server that has to prove who it is."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.channels.discord import HOME
from tests.fakes.discord import FakeDiscord
from tests.guards.sources import ROOT

NAMES = ("discord.com", "gateway.discord.gg", "gateway-us-east1-b.discord.gg")


def certificate(folder: Path, *names: str) -> Path:
    """Write a certificate for these names, with its key, that vouches for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(
            subject, subject, key.public_key(), x509.random_serial_number(), now, now + timedelta(hours=1)
        )
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / f"{names[0]}.pem"
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return file


def serving(file: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


async def bot(fake: FakeDiscord, trusted: Path) -> asyncio.subprocess.Process:
    environ = {"SSL_CERT_FILE": str(trusted), "HOME": str(trusted.parent)}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.channels.discord_tls_bot", str(fake.port), env=environ, cwd=ROOT,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def told(child: asyncio.subprocess.Process) -> object:
    """Return what the bot printed last: its log comes before."""
    async with asyncio.timeout(30):
        out, errors = await child.communicate()
    assert child.returncode == 0, errors.decode()
    return json.loads(out.splitlines()[-1])


async def test_a_bot_talks_and_resumes_at_the_public_addresses(tmp_path: Path) -> None:
    file = certificate(tmp_path, *NAMES)
    async with FakeDiscord(serving(file)) as fake:
        fake.gateway.url = f"wss://{NAMES[2]}/"
        child = await bot(fake, file)
        try:
            await fake.until(lambda: bool(fake.gateway.sessions))
            await fake.deliver(fake.write.message("one"))
            await fake.until(lambda: fake.texts(HOME) == ["You said: one"])
            await fake.gateway.say(7)
            await fake.until(lambda: fake.gateway.resumes == 1)
            await fake.deliver(fake.write.message("two"))
            assert await told(child) == {"heard": ["one", "two"]}
        finally:
            if child.returncode is None:
                child.kill()
                await child.communicate()
    assert fake.gateway.hosts == [NAMES[1], NAMES[2]]


async def test_a_server_nobody_vouches_for_gets_nothing(tmp_path: Path) -> None:
    file, other = certificate(tmp_path, *NAMES), certificate(tmp_path, "other.example")
    async with FakeDiscord(serving(file)) as fake:
        assert await told(await bot(fake, other)) == {
            "ended": "Discord cannot be reached: ClientConnectorCertificateError"
        }
        assert fake.calls == []


async def test_a_server_that_is_vouched_for_as_another_gets_nothing(tmp_path: Path) -> None:
    file = certificate(tmp_path, "other.example")
    async with FakeDiscord(serving(file)) as fake:
        assert await told(await bot(fake, file)) == {
            "ended": "Discord cannot be reached: ClientConnectorCertificateError"
        }
        assert fake.calls == []

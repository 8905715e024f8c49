"""A certificate for a server on loopback that nobody vouches for, and whom the tests' own process trusts."""

import atexit
import os
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import certifi
import pytest


def trust_one_authority() -> None:
    """From now on each client, of this process and of those it starts, reads one authority instead of all, which takes
    20 ms: no test reaches a server that any of them vouches for.
    """
    mark = "-----END CERTIFICATE-----"
    first, *_ = Path(certifi.where()).read_text("utf-8").partition(mark)
    file, name = tempfile.mkstemp(prefix="leadline-authority-", suffix=".pem")
    os.write(file, f"{first}{mark}\n".encode())
    os.close(file)
    atexit.register(os.remove, name)
    certifi.where = certifi.core.where = lambda: name
    os.environ["SSL_CERT_FILE"] = name


def self_signed() -> tuple[bytes, bytes]:
    """A key and its certificate for 127.0.0.1, as PEM."""
    x509 = pytest.importorskip("cryptography.x509", reason="a certificate is made with the package cryptography")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now, day = datetime.now(UTC), timedelta(days=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    return key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain), certificate.public_bytes(pem)


def self_signed_context(folder: Path) -> ssl.SSLContext:
    """What a TLS server on 127.0.0.1 serves with; its certificate and key are kept in `folder`."""
    file = folder / "certificate.pem"
    file.write_bytes(b"".join(self_signed()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context

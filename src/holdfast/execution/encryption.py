"""Sealing: authenticated encryption of texts, with AES-256-GCM and a fresh nonce for each text.

The subject of a text (its tenant and name) is authenticated with it: a row that is copied to another place cannot be
decrypted there.
"""

import hashlib
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from holdfast.core.errors import Broken, InvalidInput

FORM = b"\x01"  # the format version; then come the nonce and the ciphertext with its tag
NONCE_BYTES = 12

SECRETS = b"holdfast secrets 1"


class EncryptionKey:
    """An encryption key, derived from a secret and a purpose. `id` identifies it."""

    def __init__(self, secret: bytes, *, purpose: bytes = SECRETS) -> None:
        if not secret:
            raise InvalidInput("the key that encrypts secrets is empty", next="Set execution.secret_key.")
        key = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(secret)
        self._cipher = AESGCM(key)
        self.id = hashlib.sha256(b"key id" + key).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"EncryptionKey({self.id})"

    def seal(self, text: str, *, about: str) -> bytes:
        """Encrypt a text."""
        nonce = os.urandom(NONCE_BYTES)
        return FORM + nonce + self._cipher.encrypt(nonce, text.encode(), about.encode())

    def open(self, sealed: bytes, *, about: str) -> str:
        """Decrypt a text. Raise Broken unless it was sealed with this key and the same `about`."""
        nonce, body = sealed[1 : NONCE_BYTES + 1], sealed[NONCE_BYTES + 1 :]
        try:
            if sealed[:1] != FORM or len(nonce) < NONCE_BYTES:
                raise InvalidTag
            return self._cipher.decrypt(nonce, body, about.encode()).decode()
        except InvalidTag:
            raise Broken(
                "the encrypted value cannot be decrypted", why="it was changed, or it belongs to another tenant or name"
            ) from None

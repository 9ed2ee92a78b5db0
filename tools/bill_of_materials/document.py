"""The bill as a document of SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from spdx_tools.spdx.model import (
    Actor,
    ActorType,
    Checksum,
    ChecksumAlgorithm,
    CreationInfo,
    Document,
    ExternalPackageRef,
    ExternalPackageRefCategory,
    Package,
    PackagePurpose,
    Relationship,
    RelationshipType,
    SpdxNoAssertion,
)

from bill_of_materials.dist import Shipped
from bill_of_materials.part import SPDX, Part

WHOLE = "SPDXRef-DOCUMENT"
ALLOCATOR = "SPDXRef-libfreestone"
BY_ITS_OWN_BILL = "By its own bill, which names what is for other systems, and what only its build has used, as well."


def identifier(*words: str) -> str:
    """What the document calls a thing: letters, digits, points and dashes."""
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", "-".join(words))


def of_part(part: Part) -> str:
    """What the document calls a part."""
    return identifier(part.kind, part.name, part.version or "any")


def document(
    version: str,
    shipped: Sequence[Shipped],
    wanted: Mapping[str, Iterable[Part]],
    optional: Mapping[str, Iterable[Part]],
    scripts: Sequence[Part],
    *,
    licence: str,
    author: str,
    seconds: float,
) -> Document:
    """The bill of some packages.

    Args:
        wanted, optional: by a package's file name, the Python packages that it asks for, and that its extras do.
        scripts: what pages hold that are written with vl-convert-python.
        licence, author: the project's own.
        seconds: when it is made, since 1970.
    """
    digest = "".join(sorted(each.sha256 for each in shipped))
    creation = CreationInfo(
        spdx_version="SPDX-2.3",
        spdx_id=WHOLE,
        name=f"freestone-{version}",
        document_namespace=f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'freestone-{version}-{digest}')}",
        creators=[Actor(ActorType.ORGANIZATION, author), Actor(ActorType.TOOL, f"freestone-bill-{version}")],
        created=datetime.fromtimestamp(int(seconds), UTC).replace(tzinfo=None),
    )
    bill = Document(creation, packages=[_allocator(version, licence)])
    parts: set[Part] = set()
    for each in shipped:
        bill.packages.append(_shipped(each, version, licence))
        own = identifier("package", each.name)
        _relate(bill, WHOLE, RelationshipType.DESCRIBES, own)
        if each.has_allocator:
            _relate(bill, own, RelationshipType.CONTAINS, ALLOCATOR)
        groups = (
            (RelationshipType.CONTAINS, each.contains),
            (RelationshipType.STATIC_LINK, each.linked),
            (RelationshipType.DEPENDS_ON, {*each.depends, *wanted.get(each.name, ())}),
        )
        for relation, those in groups:
            for part in sorted(those, key=of_part):
                _relate(bill, own, relation, of_part(part))
            parts |= set(those)
        for part in sorted(set(optional.get(each.name, ())), key=of_part):
            _relate(bill, of_part(part), RelationshipType.OPTIONAL_DEPENDENCY_OF, own)
            parts.add(part)
        held = {part.name: part for part in each.contains}
        for owner, part in sorted(each.compiled, key=lambda pair: (pair[0], of_part(pair[1]))):
            one = of_part(held[owner]) if owner in held else own
            _relate(bill, one, RelationshipType.CONTAINS, of_part(part), BY_ITS_OWN_BILL)
            parts.add(part)
    converters = [part for part in parts if part.name == "vl-convert-python"]
    for converter in converters:
        for script in scripts:
            _relate(bill, of_part(converter), RelationshipType.CONTAINS, of_part(script))
    # One of several descriptions of a part, told by what it is called: the one that says its licence.
    told = {of_part(part): part for part in sorted(parts, key=lambda part: part.licence is not None)}
    told |= {of_part(part): part for part in scripts if converters}
    bill.packages += [_part(told[name]) for name in sorted(told)]
    return bill


def _relate(bill: Document, one: str, relation: RelationshipType, other: str, comment: str | None = None) -> None:
    bill.relationships.append(Relationship(one, relation, other, comment))


def _allocator(version: str, licence: str) -> Package:
    return Package(
        spdx_id=ALLOCATOR,
        name="libfreestone",
        download_location=SpdxNoAssertion(),
        version=version,
        files_analyzed=False,
        license_declared=SPDX.parse(licence),
        summary="The allocator. It is written here, and needs nothing but libc.",
        primary_package_purpose=PackagePurpose.LIBRARY,
    )


def _shipped(each: Shipped, version: str, licence: str) -> Package:
    return Package(
        spdx_id=identifier("package", each.name),
        name=each.name,
        download_location=SpdxNoAssertion(),
        version=version,
        file_name=f"./{each.name}",
        files_analyzed=False,
        checksums=[Checksum(ChecksumAlgorithm.SHA256, each.sha256)],
        license_declared=SPDX.parse(licence),
        primary_package_purpose=PackagePurpose.SOURCE if each.kind in ("sdist", "crate") else PackagePurpose.INSTALL,
    )


def _part(part: Part) -> Package:
    url = part.url()
    manager = ExternalPackageRefCategory.PACKAGE_MANAGER
    return Package(
        spdx_id=of_part(part),
        name=part.name,
        download_location=SpdxNoAssertion(),
        version=part.version,
        files_analyzed=False,
        license_declared=SPDX.parse(part.licence) if part.licence else SpdxNoAssertion(),
        license_comment=f"It says: {part.licence_said}" if part.licence_said and not part.licence else None,
        external_references=[ExternalPackageRef(manager, "purl", url)] if url else [],
        primary_package_purpose=PackagePurpose.LIBRARY,
    )

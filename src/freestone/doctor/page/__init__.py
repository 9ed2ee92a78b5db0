"""A diagnosis turned into what the page shows of it; the template only lays that out."""

from freestone.doctor.page.part import diagnosis_part

__all__ = ["diagnosis_part"]

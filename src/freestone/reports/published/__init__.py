"""What others published, beside what was measured here: where they agree, differ, or were an artefact."""

from freestone.reports.published.reproduction import Finding, Point, Reproduction, reproductions

__all__ = ["Finding", "Point", "Reproduction", "reproductions"]

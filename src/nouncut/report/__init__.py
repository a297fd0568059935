"""The report: a finished run as one page that needs nothing but a browser.

Nothing here knows how the labels were made.
"""

from nouncut.report.figures import Figure, method_figures, save_figures
from nouncut.report.page import Page, describe_run
from nouncut.report.pictures import Picture
from nouncut.report.thumbnails import Original, Thumbnail, make_thumbnails
from nouncut.report.write import write_report

__all__ = [
    "Figure",
    "Original",
    "Page",
    "Picture",
    "Thumbnail",
    "describe_run",
    "make_thumbnails",
    "method_figures",
    "save_figures",
    "write_report",
]

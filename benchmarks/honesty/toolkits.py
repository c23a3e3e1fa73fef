"""The same window in four more toolkits: Qt 6, GTK 4, Java's Swing, and a page in Chromium."""

from pathlib import Path

from benchmarks.honesty.book import Book
from benchmarks.honesty.rigs import SYSTEM_PYTHON, imports, in_browser, native, new_log
from benchmarks.honesty.stage import PROGRAMS, lacks, running
from benchmarks.honesty.web import serving

_ATK = Path("/usr/share/java/java-atk-wrapper.jar")
FLAGS = (
    "--no-sandbox", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--password-store=basic",
    "--disable-background-networking", "--disable-component-update", "--window-size=900,700",
)  # fmt: skip


async def qt6(book: Book) -> None:
    if imports(book, "PyQt6.QtWidgets", "python3-pyqt6"):
        await native(book, "PyQt 6", "qt rig", SYSTEM_PYTHON, str(PROGRAMS / "qt_rig.py"), last=["6"])


async def gtk4(book: Book) -> None:
    if imports(book, "gi; gi.require_version('Gtk', '4.0')", "gir1.2-gtk-4.0"):
        await native(book, "GTK 4", "gtk4 rig", SYSTEM_PYTHON, str(PROGRAMS / "gtk4_rig.py"))


async def swing(book: Book) -> None:
    if lacks(book, "java", "javac"):
        return
    if not _ATK.exists():
        book.absent.append("libatk-wrapper-java-jni")
        return
    bridge = ("-cp", str(_ATK), "-Djavax.accessibility.assistive_technologies=org.GNOME.Accessibility.AtkWrapper")
    native_code = next(iter(Path("/usr/lib").glob("*/jni/libatk-wrapper.so"))).parent
    argv = ["java", *bridge, f"-Djava.library.path={native_code}", str(PROGRAMS / "SwingRig.java")]
    await native(book, "Swing", "swing rig", *argv)


async def chromium(book: Book) -> None:
    if lacks(book, "chromium"):
        return
    log = new_log(book, "chromium")
    async with serving(PROGRAMS / "rig.html", log.path) as page:
        argv = ["chromium", f"--user-data-dir={book.folder / 'chromium-profile'}", *FLAGS, page.address]
        with running(book, "Chromium", *argv) as process:
            await in_browser(book, log, page, process)

"""The help of the view."""

LINES = (
    "1 calls      each call of a client as it happens, and your own acts",
    "2 clients    who was heard of, by connection",
    "3 running    processes and agents that clients started",
    "4 listening  what accepts connections, for whom, and what closes it",
    "Tab          the next view",
    "",
    "A request that waits for you stands on top. While this program runs, calls wait for your answer.",
    "a  approve it, this once          d  deny it",
    "s  approve its shape              m  approve this exact request again",
    "v  read all of it                 n  show the next one",
    "s and m show what they cover first. What is longer than the screen is approved only once you have seen its end.",
    "",
    "Enter  everything of the selected row",
    "x  stop the selected call, process or agent",
    "u  take back what the selected call changed",
    "p  pause every client, or let them go on",
    "o  open the file of the selected call, the address, or the picture of the request",
    "/  show only rows that have these words; Esc shows all again",
    "b  older calls                    t  back to a time, such as 2h or 2026-11-01",
    "l  the newest calls again         q  quit",
)

"""The style sheet of the view."""

STYLE = """
Screen { layout: vertical; }
#head { height: 1; background: $primary; color: $text; }
#views, #note { height: 1; }
#row { height: auto; max-height: 2; color: $text-muted; }
#keys { height: auto; max-height: 3; color: $text-muted; }
#table { height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }
#filter { display: none; height: 1; border: none; padding: 0; }
#requests { height: auto; max-height: 70%; border: solid $warning; padding: 0; display: none; scrollbar-size-vertical: 1; }
.title { height: 1; text-style: bold; color: $warning; }
#text { height: 1fr; }
QuestionScreen { align: center middle; }
#question { width: 76; height: auto; max-height: 20; border: heavy $warning; padding: 1 2; background: $surface; }
"""

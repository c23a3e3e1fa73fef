"""Agent programs such as Codex: started in a folder of a scope, watched by their events, judged by their diff."""

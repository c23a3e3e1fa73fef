# A window of Tk, which describes no controls; it logs each event it handles. Commands come on stdin.
set log [lindex $argv 0]
proc log {line} { set out [open $::log a]; puts $out $line; close $out }
proc live {name} { log $name; incr ::count; .shown configure -text "Count: $::count" }
proc slow {name} { after 1500; live $name }
wm title . "tk rig"
wm geometry . 520x420+60+60
set count 0
label .shown -text "Count: 0"; place .shown -x 300 -y 10
label .clock -text "--:--:--"; place .clock -x 300 -y 40
set place 0
foreach name {Alpha Beta Gamma Delta Quiet Dead Slow Off} {
    set path .b[string tolower $name]
    button $path -text $name -takefocus 1
    place $path -x [expr {10 + 140 * ($place % 2)}] -y [expr {10 + 60 * ($place / 2)}] -width 120 -height 40
    incr place
}
foreach name {Alpha Beta Gamma Delta} { .b[string tolower $name] configure -command [list live $name] }
.bquiet configure -command {log Quiet}
.bslow configure -command {slow Slow}
.boff configure -command {live Off} -state disabled
entry .line -width 20; place .line -x 300 -y 230 -height 34
proc tick {} { .clock configure -text [clock format [clock seconds] -format %H:%M:%S]; set ::ticking [after 1000 tick] }
proc command {} {
    if {[gets stdin word] < 0} { if {[eof stdin]} { fileevent stdin readable {} }; return }
    switch $word {
        tick { tick }
        still { catch { after cancel $::ticking } }
        clear { .line delete 0 end }
        read { log "line=[.line get]" ; return }
        where { foreach w [winfo children .] { log "at $w [winfo rootx $w] [winfo rooty $w] [winfo width $w] [winfo height $w]" } }
    }
    log "did $word"
}
fconfigure stdin -blocking 0 -encoding utf-8
fileevent stdin readable command

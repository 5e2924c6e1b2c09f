package dialogue

// steps is the table of TestSteps. Its columns are an input, the situations in which the input comes, the change of
// the state (see change), and the effects in their order (see effectInWords).
//
// A number such as +1 or -1 is the change of the number of waiting announcements. The change of a timer begins with
// the time after which the timer is due. The effect "cancel" means cancelTurn and the event turn_ended with the end
// cancelled; "listen" means resetInput and the event listening_started.
const steps = `
hello           | greeting                                   | quiet           | welcome, collectWaiting
hello           | early commands                             | thinking -3     | welcome, collectWaiting, reboot, face happy, emotion, beginTurn hi
hello           | elsewhere                                  | =               | welcome
listen auto     | greeting, answers soon                     | =               |
listen auto     | connecting, quiet, resting, aborted story  | ready           | listen
listen auto     | ready, ready (realtime), asked (realtime)  | =               | listen
listen auto     | answer awaited                             | =               | listen
listen auto     | hearing (manual), thinking (manual)        | ready           | cancel, listen
listen auto     | answers later                              | ready           | cancel, listen
listen auto     | speaking, speaking (manual)                | =, then listens |
listen auto     | speaking (realtime), news to begin         | =, then listens |
listen auto     | question to sound                          | =, then listens |
listen auto     | woken                                      | thinking        | listen, beginTurn awake
listen auto     | news, playing, inquiry to sound            | =, then listens | restartSpeech
listen auto     | inquiry sounds                             | =, then listens | restartSpeech
listen auto     | question sounds                            | ready, asked    | cutQuestion, listen
listen auto     | asked, answer recognizing, inquiry         | ready, asked    | listen
listen auto     | answering                                  | ready, asked    | finishUtterance, listen
listen auto     | playing after abort                        | ready           | cancelTurn, listen
listen auto     | waking                                     | ready           | cancel, listen, listen
listen auto     | elsewhere                                  | ready           | cancel, listen, listen
listen manual   | greeting                                   | =               |
listen manual   | hearing, hearing (realtime)                | =               | cancel, listen, listen, beginTurn utterance
listen manual   | hearing (manual)                           | =               | cancel, listen, beginTurn utterance
listen manual   | recognizing, recognizing (realtime)        | hearing         | cancel, listen, listen, beginTurn utterance
listen manual   | thinking, thinking (realtime)              | hearing         | cancel, listen, listen, beginTurn utterance
listen manual   | speaking (realtime)                        | hearing         | cancel, listen, listen, beginTurn utterance
listen manual   | thinking (manual), speaking                | hearing         | cancel, listen, beginTurn utterance
listen manual   | speaking (manual)                          | hearing         | cancel, listen, beginTurn utterance
listen manual   | news to begin                              | hearing +1      | cancel, listen, listen, beginTurn utterance
listen manual   | news                                       | hearing         | cancel, notification_changed n spoken, listen, beginTurn utterance
listen manual   | playing                                    | hearing         | cancelTurn, sound_ended cancelled, listen, beginTurn utterance
listen manual   | question to sound                          | hearing         | answered closed, cancel, listen, beginTurn utterance
listen manual   | question sounds                            | hearing, asked  | cutQuestion, listen, startAnswer
listen manual   | asked, asked (realtime), answer awaited    | hearing, asked  | listen, startAnswer
listen manual   | answer recognizing, inquiry                | hearing, asked  | listen, startAnswer
listen manual   | answering                                  | =               | finishUtterance, listen, startAnswer
listen manual   | inquiry to sound                           | hearing +1      | cancel, listen, beginTurn utterance
listen manual   | inquiry sounds                             | hearing         | cancel, endInquiry closed, listen, beginTurn utterance
listen manual   | elsewhere                                  | hearing         | listen, beginTurn utterance
listen realtime | greeting, speaking, speaking (manual)      | =               |
listen realtime | speaking (realtime), question to sound     | =               |
listen realtime | connecting, quiet, resting                 | ready           | listen
listen realtime | ready, ready (realtime), asked (realtime)  | =               | listen
listen realtime | answer awaited                             | =               | listen
listen realtime | hearing (manual), thinking (manual)        | ready           | cancel, listen
listen realtime | woken                                      | thinking        | listen, beginTurn awake
listen realtime | news to begin                              | =, then listens |
listen realtime | news, playing, inquiry to sound            | =, then listens | restartSpeech
listen realtime | inquiry sounds                             | =, then listens | restartSpeech
listen realtime | question sounds                            | ready, asked    | cutQuestion, listen
listen realtime | asked, answer recognizing, inquiry         | ready, asked    | listen
listen realtime | answering                                  | ready, asked    | finishUtterance, listen
listen realtime | elsewhere                                  | ready           | cancel, listen, listen
listen stop     | ready, ready (realtime)                    | quiet           |
listen stop     | hearing, hearing (manual)                  | thinking        | finishUtterance
listen stop     | hearing (realtime)                         | thinking        | finishUtterance
listen stop     | asked (realtime), answer awaited           | quiet, asked    |
listen stop     | answering                                  | thinking, asked | finishUtterance
wake word       | greeting                                   | =               |
wake word       | connecting, quiet, woken                   | =               | reportWakeText
wake word       | ready, ready (realtime), resting           | thinking        | beginTurn hi
wake word       | hearing, hearing (realtime)                | thinking        | cancel, listen, beginTurn hi
wake word       | speaking (realtime)                        | thinking        | cancel, listen, beginTurn hi
wake word       | hearing (manual), speaking                 | thinking        | cancel, beginTurn hi
wake word       | speaking (manual)                          | thinking        | cancel, beginTurn hi
wake word       | recognizing, recognizing (realtime)        | =               | cancel, listen, beginTurn hi
wake word       | thinking, thinking (realtime)              | =               | cancel, listen, beginTurn hi
wake word       | thinking (manual)                          | =               | cancel, beginTurn hi
wake word       | news to begin                              | = +1            | cancel, listen, beginTurn hi
wake word       | news                                       | thinking        | cancel, notification_changed n spoken, beginTurn hi
wake word       | playing                                    | thinking        | cancelTurn, sound_ended cancelled, beginTurn hi
wake word       | question to sound                          | thinking        | answered closed, cancel, beginTurn hi
wake word       | question sounds                            | =               | cutQuestion, answerQuestion answered
wake word       | inquiry to sound                           | thinking +1     | cancel, beginTurn hi
wake word       | inquiry sounds                             | thinking        | cancel, endInquiry closed, beginTurn hi
wake word       | elsewhere                                  | =               | answerQuestion answered
face            | greeting                                   | =               |
face            | elsewhere                                  | =               | reportWakeText
typed           | greeting, just typed                       | =               |
typed           | hearing, hearing (realtime)                | thinking        | cancel, listen, beginTurn hi
typed           | speaking (realtime)                        | thinking        | cancel, listen, beginTurn hi
typed           | hearing (manual), speaking                 | thinking        | cancel, beginTurn hi
typed           | speaking (manual)                          | thinking        | cancel, beginTurn hi
typed           | recognizing, recognizing (realtime)        | =               | cancel, listen, beginTurn hi
typed           | thinking, thinking (realtime), waking      | =               | cancel, listen, beginTurn hi
typed           | thinking (manual), typed a while ago       | =               | cancel, beginTurn hi
typed           | news to begin                              | = +1            | cancel, listen, beginTurn hi
typed           | news                                       | thinking        | cancel, notification_changed n spoken, beginTurn hi
typed           | playing                                    | thinking        | cancelTurn, sound_ended cancelled, beginTurn hi
typed           | question to sound                          | thinking        | answered closed, cancel, beginTurn hi
typed           | question sounds                            | =               | cutQuestion, answerQuestion answered
typed           | asked, asked (realtime), answer awaited    | =               | answerQuestion answered
typed           | answering, answer recognizing, inquiry     | =               | answerQuestion answered
typed           | inquiry to sound                           | thinking +1     | cancel, beginTurn hi
typed           | inquiry sounds                             | thinking        | cancel, endInquiry closed, beginTurn hi
typed           | elsewhere                                  | thinking        | beginTurn hi
abort           | greeting                                   | =               |
abort           | connecting, quiet, ready, ready (realtime) | =               | tts stop
abort           | resting, woken                             | =               | tts stop
abort           | hearing (manual), thinking (manual)        | quiet           | cancel abort
abort           | speaking, speaking (manual)                | quiet           | cancel abort
abort           | goodbye before news                        | quiet           | cancel abort
abort           | news to begin                              | ready +1        | cancel abort, listen
abort           | news, last news spoken                     | quiet           | cancel abort, notification_changed n spoken
abort           | playing                                    | quiet           | cancelTurn abort, sound_ended cancelled
abort           | question to sound, question sounds, asked  | quiet           | answered closed, cancel abort
abort           | asked (realtime), answer awaited           | ready           | answered closed, cancel abort, listen
abort           | answering, answer recognizing              | ready           | answered closed, cancel abort, listen
abort           | inquiry to sound, last news                | quiet +1        | cancel abort
abort           | inquiry sounds                             | quiet           | cancel abort, endInquiry closed
abort           | inquiry, inquiry put                       | quiet           | answered closed, cancel abort, endInquiry closed
abort           | elsewhere                                  | ready           | cancel abort, listen
sensor          | greeting                                   | =               |
sensor          | sound waits                                | thinking -1     | reportSensor, beginTurn song
sensor          | elsewhere                                  | =               | reportSensor
touch           | greeting                                   | =               |
touch           | question sounds, asked, asked (realtime)   | =               | reportSensor, answerQuestion touched
touch           | answer awaited, answering                  | =               | reportSensor, answerQuestion touched
touch           | answer recognizing, inquiry                | =               | reportSensor, answerQuestion touched
touch           | elsewhere                                  | =               | reportSensor
mcp             | greeting                                   | =               |
mcp             | elsewhere                                  | =               | deliverMCP
speech began    | interrupted                                | =               |
speech began    | ready, ready (realtime), put off           | hearing         | beginTurn utterance
speech began    | thinking (realtime), speaking (realtime)   | hearing         | cancel, listening_started, beginTurn utterance
speech began    | asked (realtime), answer awaited           | hearing, asked  | startAnswer
speech began    | misheard once, silence then noise          | hearing         | beginTurn utterance in silence
speech began    | silence once                               | hearing         | beginTurn utterance
speech ended    | hearing, hearing (manual)                  | thinking        | finishUtterance
speech ended    | hearing (realtime)                         | thinking        | finishUtterance
speech ended    | answering                                  | thinking, asked | finishUtterance
streaming       | resting, interrupted                       | ready           | listen
transcript      | hearing, hearing (manual)                  | =               | keepTranscript, stt hi, heard
transcript      | hearing (realtime), recognizing            | =               | keepTranscript, stt hi, heard
transcript      | recognizing (realtime)                     | =               | keepTranscript, stt hi, heard
transcript      | elsewhere                                  | =               | stt hi, heard
misheard        | question to sound, question sounds         | quiet, asked    | stt …, misheard
misheard        | asked (realtime), answer awaited           | =               | stt …, misheard, listen
misheard        | answer recognizing                         | ready, asked    | stt …, misheard, listen
misheard        | elsewhere                                  | =               | stt …, misheard
silence         | question to sound, question sounds         | quiet, asked    | stt …, misheard
silence         | asked (realtime), answer awaited           | =               | stt …, misheard, listen
silence         | answer recognizing                         | ready, asked    | stt …, misheard, listen
silence         | elsewhere                                  | =               | stt …, misheard
question put    | thinking, thinking (manual)                | thinking, asked | showQuestion, asked
question put    | thinking (realtime)                        | thinking, asked | showQuestion, asked
question put    | speaking, speaking (manual)                | speaking, asked | showQuestion, asked
question put    | speaking (realtime)                        | speaking, asked | showQuestion, asked
inquiry put     | inquiry to sound                           | speaking, asked | showQuestion
inquiry put     | inquiry sounds                             | speaking, asked | showQuestion, asked
answered        | question to sound, question sounds         | speaking        | answered touched
answered        | answering                                  | thinking        | finishUtterance, answered touched
answered        | inquiry                                    | thinking        | answered touched, endInquiry touched
answered        | elsewhere                                  | thinking        | answered touched
cannot ask      | question to sound, question sounds         | speaking        | answered closed
cannot ask      | answering                                  | thinking        | finishUtterance, answered closed
cannot ask      | elsewhere                                  | thinking        | answered closed
finished        | waking                                     | =               |
finished        | drained                                    | quiet           | endTurn done
goodbye         | drained                                    | closing, then hangs up | endTurn hang_up, closeChannel hang_up
good night      | drained                                    | closing         | endTurn sleep, closeChannel sleep
failed          | drained                                    | quiet           | endTurn failed
nothing         | drained                                    | quiet           | endTurn
starts          | recognizing (realtime)                     | speaking        | resetInput
starts          | thinking (realtime)                        | speaking        | resetInput
starts          | elsewhere                                  | speaking        |
sounds          | speaking, speaking (manual)                | =               | speaking_started, said
sounds          | speaking (realtime)                        | =               | speaking_started, said
sounds          | news                                       | =               | speaking_started, notification_changed n shown, said
plays           | playing                                    | =               | sound_started
question sounds | question to sound, question sounds         | =               | speaking_started, said
inquiry sounds  | inquiry to sound, inquiry sounds           | =               | speaking_started, said
paused          | question to sound, question sounds         | quiet, asked    |
paused          | answer recognizing                         | ready, asked    | listen
drained         | done                                       | quiet           | endTurn done
drained         | goodbye before news                        | thinking -1, then hangs up | endTurn hang_up, beginTurn News.
drained         | last news spoken                           | closing         | endTurn done, notification_changed n spoken, closeChannel hang_up
drained         | news put off                               | thinking -1     | endTurn done, beginTurn News.
drained         | fire instead                               | thinking -1     | endTurn done, notification_changed u spoken, beginTurn News.
drained         | inquiry then fire                          | = -1            | endTurn done, beginTurn Fire.
say             | quiet, ready, ready (realtime), resting    | thinking        | beginTurn Dinner.
say             | woken                                      | thinking        | beginTurn Dinner.
say             | elsewhere                                  | = +1            |
notice          | quiet, resting, woken                      | thinking        | beginTurn News.
notice          | news to begin, news, news waits            | =               |
notice          | interrupted                                | =               |
notice          | elsewhere                                  | = +1            |
urgent          | quiet, ready, ready (realtime), resting    | thinking        | beginTurn Fire.
urgent          | woken                                      | thinking        | beginTurn Fire.
urgent          | hearing, hearing (realtime)                | thinking        | cancel, listen, beginTurn Fire.
urgent          | speaking (realtime)                        | thinking        | cancel, listen, beginTurn Fire.
urgent          | hearing (manual), speaking                 | thinking        | cancel, beginTurn Fire.
urgent          | speaking (manual)                          | thinking        | cancel, beginTurn Fire.
urgent          | recognizing, recognizing (realtime)        | =               | cancel, listen, beginTurn Fire.
urgent          | thinking, thinking (realtime)              | =               | cancel, listen, beginTurn Fire.
urgent          | thinking (manual)                          | =               | cancel, beginTurn Fire.
urgent          | news to begin                              | = +1            | cancel, listen, beginTurn Fire.
urgent          | news, inquiry to sound, inquiry sounds     | thinking +1     | cancel, beginTurn Fire.
urgent          | playing                                    | thinking        | cancelTurn, sound_ended cancelled, beginTurn Fire.
urgent          | fire instead                               | =               |
urgent          | elsewhere                                  | = +1            |
alert           | greeting                                   | = +1            |
alert           | elsewhere                                  | =               | alert, notification_changed s shown
emotion         | greeting                                   | = +1            |
emotion         | elsewhere                                  | =               | face happy, emotion
text            | greeting                                   | = +1            |
text            | hearing, hearing (realtime)                | thinking        | cancel, listen, beginTurn hi
text            | speaking (realtime)                        | thinking        | cancel, listen, beginTurn hi
text            | hearing (manual), speaking                 | thinking        | cancel, beginTurn hi
text            | speaking (manual)                          | thinking        | cancel, beginTurn hi
text            | recognizing, recognizing (realtime)        | =               | cancel, listen, beginTurn hi
text            | thinking, thinking (realtime)              | =               | cancel, listen, beginTurn hi
text            | thinking (manual)                          | =               | cancel, beginTurn hi
text            | news to begin                              | = +1            | cancel, listen, beginTurn hi
text            | news                                       | thinking        | cancel, notification_changed n spoken, beginTurn hi
text            | playing                                    | thinking        | cancelTurn, sound_ended cancelled, beginTurn hi
text            | question to sound, question sounds, asked  | thinking        | answered closed, cancel, beginTurn hi
text            | asked (realtime), answer awaited           | thinking        | answered closed, cancel, listen, beginTurn hi
text            | answering, answer recognizing              | thinking        | answered closed, cancel, listen, beginTurn hi
text            | inquiry to sound                           | thinking +1     | cancel, beginTurn hi
text            | inquiry sounds                             | thinking        | cancel, endInquiry closed, beginTurn hi
text            | inquiry                                    | thinking        | answered closed, cancel, endInquiry closed, beginTurn hi
text            | elsewhere                                  | thinking        | beginTurn hi
be quiet        | greeting                                   | =               |
be quiet        | connecting, quiet, ready, ready (realtime) | =               | tts stop
be quiet        | resting, woken                             | =               | tts stop
be quiet        | hearing (manual), thinking (manual)        | quiet           | cancel abort
be quiet        | speaking, speaking (manual), last news     | quiet           | cancel abort
be quiet        | news                                       | quiet           | cancel abort, notification_changed n spoken
be quiet        | playing                                    | quiet           | cancelTurn abort, sound_ended cancelled
be quiet        | question to sound, question sounds, asked  | quiet           | answered closed, cancel abort
be quiet        | asked (realtime), answer awaited           | ready           | answered closed, cancel abort, listen
be quiet        | answering, answer recognizing              | ready           | answered closed, cancel abort, listen
be quiet        | inquiry to sound, inquiry sounds           | quiet           | cancel abort, endInquiry closed
be quiet        | inquiry                                    | quiet           | answered closed, cancel abort, endInquiry closed
be quiet        | elsewhere                                  | ready           | cancel abort, listen
hold            | greeting                                   | = +1            |
collect         | greeting                                   | = +1            |
collect         | elsewhere                                  | =               | collectWaiting
allow           | greeting                                   | = +1            |
allow           | question to sound, question sounds, asked  | =               | answerQuestion allowed
allow           | asked (realtime), answer awaited           | =               | answerQuestion allowed
allow           | answering, answer recognizing              | =               | answerQuestion allowed
deny            | greeting                                   | = +1            |
deny            | inquiry                                    | =               | answerQuestion denied
ask             | greeting                                   | =               | endInquiry error
ask             | quiet, ready, ready (realtime), resting    | thinking        | beginTurn May we?
ask             | woken                                      | thinking        | beginTurn May we?
ask             | elsewhere                                  | = +1            |
withdraw        | inquiry to sound, inquiry sounds           | quiet           | cancel
withdraw        | inquiry                                    | quiet           | answered closed, cancel
withdraw        | inquiry waits                              | = -1            |
play            | greeting                                   | =               | answerPlay robot_offline
play            | connecting                                 | = +1            | answerPlay yes
play            | quiet, ready, ready (realtime), resting    | thinking        | beginTurn song, answerPlay yes
play            | woken                                      | thinking        | beginTurn song, answerPlay yes
play            | sound waits                                | =               | answerPlay robot_speaking
play            | elsewhere                                  | =               | answerPlay robot_speaking
reboot          | greeting                                   | = +1            |
reboot          | elsewhere                                  | =               | reboot
hang up         | greeting, connecting, quiet, ready         | closing         | closeChannel bye
hang up         | ready (realtime), resting, woken           | closing         | closeChannel bye
hang up         | news to begin, last news                   | closing +1      | cancel, closeChannel bye
hang up         | playing                                    | closing         | cancelTurn, sound_ended cancelled, closeChannel bye
hang up         | question to sound, question sounds, asked  | closing         | answered closed, cancel, closeChannel bye
hang up         | asked (realtime), answer awaited           | closing         | answered closed, cancel, closeChannel bye
hang up         | answering, answer recognizing              | closing         | answered closed, cancel, closeChannel bye
hang up         | inquiry to sound, inquiry sounds           | closing         | cancel, endInquiry error, closeChannel bye
hang up         | inquiry                                    | closing         | answered closed, cancel, endInquiry error, closeChannel bye
hang up         | inquiry waits                              | closing -1      | cancel, endInquiry error, closeChannel bye
hang up         | news waits                                 | closing         | cancel, closeChannel bye
hang up         | elsewhere                                  | closing         | cancel, closeChannel bye
timer           | greeting                                   | 10s closing     | closeChannel no hello
timer           | connecting                                 | 2s =            |
timer           | quiet, opened late                         | 58s closing     | closeChannel idle
timer           | ready, ready (realtime), recognizing       | 58s =           | xiaozhi.KeepAlive
timer           | recognizing (realtime), sensing, held      | 58s =           | xiaozhi.KeepAlive
timer           | hearing, hearing (realtime)                | 1.2s thinking   | finishUtterance
timer           | hearing (manual)                           | 15s thinking    | finishUtterance
timer           | resting, misheard once, noise then news    | 1m0s closing    | closeChannel idle
timer           | silence once                               | 1m0s closing    | closeChannel idle
timer           | cough in a story, aborted story            | 1m0s closing    | closeChannel idle
timer           | woken                                      | 500ms thinking  | beginTurn awake
timer           | news to begin                              | 55s =           | xiaozhi.KeepAlive
timer           | asked, asked (realtime), answer awaited    | 10s =           | answerQuestion expired
timer           | answer recognizing                         | 10s =           | answerQuestion expired
timer           | answering                                  | 1.2s thinking, asked | finishUtterance
timer           | answering late                             | 1s thinking, asked   | answerQuestion expired, finishUtterance
timer           | inquiry to sound, inquiry sounds           | 58s quiet       | endInquiry expired, cancel
timer           | inquiry                                    | 58s =           | answerQuestion expired
timer           | sound waits                                | 2s thinking -1  | beginTurn song
timer           | interrupted                                | 2s thinking -1  | beginTurn News.
timer           | put off                                    | 3s thinking -1  | beginTurn Dinner.
timer           | inquiry waits                              | 58s = -1        | endInquiry expired
timer           | inquiry put                                | 58s =           | cutQuestion, answerQuestion expired
timer           | inquiry put off                            | 2s thinking -1  | beginTurn May we?
timer           | elsewhere                                  | 1m0s =          | xiaozhi.KeepAlive
`

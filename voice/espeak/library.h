/* What serve.go asks of libespeak-ng (speak_lib.h). The library has one voice and one
 * text at a time for a whole process, and so has this. */
#include <stddef.h>

/* open_library loads it and returns its rate in Hz, or 0 and why it cannot be. What is
 * spoken is written to a file. */
int open_library(int output, const char **reason);

/* use_voice returns 0 where there is a voice of that name. Speed is in words a minute. */
int use_voice(const char *name, int speed);

/* speak writes the sound of a text, UTF-8, in frames: the number of bytes, of which 32
 * bits are written, and 16-bit mono PCM, both in the byte order of the machine. It returns
 * 0 where all was spoken and written. */
int speak(const char *text, size_t length);

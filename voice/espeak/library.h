/* Functions of libespeak-ng (speak_lib.h) for serve.go. A process has only one instance of
 * the library, which has one voice and synthesizes one text at a time. */
#include <stddef.h>

/* open_library loads the library and returns its sample rate in Hz. If that fails, it returns
 * 0 and sets reason. The sound will be written to the file descriptor output. */
int open_library(int output, const char **reason);

/* use_voice selects a voice and a speed in words per minute. It returns 0 if it succeeds. */
int use_voice(const char *name, int speed);

/* speak synthesizes a text in UTF-8 and writes the sound in frames. A frame is the number of
 * its bytes, as 32 bits, followed by 16-bit mono PCM, in native byte order. It returns 0 if it
 * succeeds. */
int speak(const char *text, size_t length);

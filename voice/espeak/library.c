#include "library.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

/* Constants of speak_lib.h. */
enum {
    audio_synchronous = 2, /* espeak_Synth returns after synthesis, and does not play */
    dont_exit = 0x8000,    /* return an error if the library's data is missing */
    rate_parameter = 1,
    by_character = 1,
    utf8 = 1,
    end_pause = 0x1000,
};

/* Length of a frame of sound in milliseconds, and size of the output buffer in bytes. With
 * shorter frames, the first sound comes sooner, but the reader wakes up more often. */
enum { frame_ms = 100, buffer_size = 1 << 16 };

typedef int (*callback_t)(short *, int, void *);

/* espeak_VOICE of speak_lib.h. */
typedef struct {
    const char *name, *languages, *identifier;
    unsigned char gender, age, variant, unused;
    int score;
    void *spare;
} voice_t;

static int (*set_voice)(const char *);
static int (*set_language)(voice_t *);
static int (*set_parameter)(int, int, int);
static int (*synth)(const void *, size_t, unsigned, int, unsigned, unsigned, unsigned *, void *);
static FILE *file; /* the output */
static int failed; /* whether writing the current text has failed */

/* write_frame is the library's callback. If it does not return 0, the library stops. */
static int write_frame(short *pcm, int samples, void *events) {
    (void)events;
    if (pcm != NULL && samples > 0 && !failed) {
        uint32_t size = (uint32_t)samples * sizeof *pcm;
        failed = fwrite(&size, sizeof size, 1, file) != 1 || fwrite(pcm, size, 1, file) != 1 || fflush(file) != 0;
    }
    return failed;
}

int open_library(int output, const char **reason) {
    /* The program is not linked with the library, because all processes of the program would
     * then load the thirty libraries that it depends on, such as PulseAudio's. */
    void *library = dlopen("libespeak-ng.so.1", RTLD_NOW);
    if (library == NULL) {
        *reason = dlerror();
        return 0;
    }
    int (*initialize)(int, int, const char *, int) = dlsym(library, "espeak_Initialize");
    void (*set_callback)(callback_t) = dlsym(library, "espeak_SetSynthCallback");
    set_voice = dlsym(library, "espeak_SetVoiceByName");
    set_language = dlsym(library, "espeak_SetVoiceByProperties");
    set_parameter = dlsym(library, "espeak_SetParameter");
    synth = dlsym(library, "espeak_Synth");
    if (!initialize || !set_callback || !set_voice || !set_language || !set_parameter || !synth) {
        *reason = "libespeak-ng.so.1 does not have all functions of speak_lib.h";
        return 0;
    }
    int rate = initialize(audio_synchronous, frame_ms, NULL, dont_exit);
    if (rate <= 0) {
        *reason = "it cannot read its data, espeak-ng-data";
        return 0;
    }
    file = fdopen(output, "w");
    if (file == NULL || setvbuf(file, NULL, _IOFBF, buffer_size) != 0) {
        *reason = "its output cannot be written";
        return 0;
    }
    set_callback(write_frame);
    return rate;
}

int use_voice(const char *name, int speed) {
    int status = set_voice(name);
    if (status != 0) { /* the name may be a language of a voice, such as fr-fr */
        voice_t properties = {.languages = name};
        status = set_language(&properties);
    }
    return status != 0 ? status : set_parameter(rate_parameter, speed, 0);
}

int speak(const char *text, size_t length) {
    failed = 0;
    int status = synth(text, length + 1, 0, by_character, 0, utf8 | end_pause, NULL, NULL);
    return failed ? failed : status;
}

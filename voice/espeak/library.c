#include "library.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

/* Constants of speak_lib.h. */
enum {
    audio_synchronous = 2, /* espeak_Synth returns when all is made, and plays nothing */
    dont_exit = 0x8000,    /* where the library finds no data */
    rate_parameter = 1,
    by_character = 1,
    utf8 = 1,
    end_pause = 0x1000,
};

/* A piece of sound is so long. The shorter it is, the sooner the first comes, and the more
 * often the reader wakes up for the next. */
enum { piece_ms = 100, most_piece = 1 << 16 };

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
static FILE *file;
static int failed;

/* pass is the library's callback. What it returns ends the text where it is not 0. */
static int pass(short *pcm, int samples, void *events) {
    (void)events;
    if (pcm != NULL && samples > 0 && !failed) {
        uint32_t size = (uint32_t)samples * sizeof *pcm;
        failed = fwrite(&size, sizeof size, 1, file) != 1 || fwrite(pcm, size, 1, file) != 1 || fflush(file) != 0;
    }
    return failed;
}

int open_library(int output, const char **reason) {
    /* It is loaded, and not linked to: with it come thirty libraries of PulseAudio and
     * others, which all other processes of this program do without. */
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
        *reason = "libespeak-ng.so.1 has not all functions of speak_lib.h";
        return 0;
    }
    int rate = initialize(audio_synchronous, piece_ms, NULL, dont_exit);
    if (rate <= 0) {
        *reason = "it cannot read its data, espeak-ng-data";
        return 0;
    }
    file = fdopen(output, "w");
    if (file == NULL || setvbuf(file, NULL, _IOFBF, most_piece) != 0) {
        *reason = "its output cannot be written";
        return 0;
    }
    set_callback(pass);
    return rate;
}

int use_voice(const char *name, int speed) {
    int status = set_voice(name);
    if (status != 0) { /* it may be a voice's language, as fr-fr is */
        voice_t of = {.languages = name};
        status = set_language(&of);
    }
    return status != 0 ? status : set_parameter(rate_parameter, speed, 0);
}

int speak(const char *text, size_t length) {
    failed = 0;
    int status = synth(text, length + 1, 0, by_character, 0, utf8 | end_pause, NULL, NULL);
    return failed ? failed : status;
}

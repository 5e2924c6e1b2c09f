/* Functions that decoder.go calls in addition to those of libpocketsphinx. */
#include <pocketsphinx.h>

enum { cepstrumSize = 13 };

typedef ps_decoder_t decoder_t;

typedef struct {
    char text[256];
} reason_t;

typedef struct {
    char const *word; /* owned by the decoder */
    int first, last;
    int score;
} span_t;

/* These four write the library's error message to reason when they fail. */
decoder_t *open_decoder(int argc, char **argv, reason_t *reason);
int add_word(decoder_t *ps, char *word, char *phones, reason_t *reason);
int set_grammar(decoder_t *ps, char *name, char *jsgf, reason_t *reason);
int use_grammar(decoder_t *ps, char *name, reason_t *reason);

/* close_decoder frees the decoder and returns free memory to the kernel. */
void close_decoder(decoder_t *ps);

/* spans writes the words of the result to out, at most max_spans, and returns their number. */
int spans(decoder_t *ps, span_t *out, int max_spans);

/* get_mean copies the mean of the cepstra to mean, which has cepstrumSize elements. */
void get_mean(decoder_t *ps, float *mean);
/* set_mean sets the mean as if it had been computed from this number of frames. */
void set_mean(decoder_t *ps, float *mean, int frames);

/* What decoder.go asks of libpocketsphinx beyond its own calls. */
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

/* These four put the library's complaint into reason when they fail. */
decoder_t *open_decoder(int argc, char **argv, reason_t *reason);
int add_word(decoder_t *ps, char *word, char *phones, reason_t *reason);
int set_grammar(decoder_t *ps, char *name, char *jsgf, reason_t *reason);
int use_grammar(decoder_t *ps, char *name, reason_t *reason);

/* spans fills out with the words of the result and returns their number. */
int spans(decoder_t *ps, span_t *out, int most);

void get_mean(decoder_t *ps, float *mean);
void set_mean(decoder_t *ps, float *mean, int frames);

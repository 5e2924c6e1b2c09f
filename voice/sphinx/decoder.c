#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>

#include <sphinxbase/err.h>

#include "decoder.h"

/* Where the library's complaints go. It complains on the thread that called
 * it, so two callers do not mix; at any other time nobody hears. */
static __thread reason_t *complaints;

static void keep_complaint(void *unused, err_lvl_t level, const char *format, ...) {
    va_list args;
    (void)unused;
    if (complaints == NULL || level < ERR_ERROR)
        return;
    va_start(args, format);
    vsnprintf(complaints->text, sizeof complaints->text, format, args);
    va_end(args);
}

decoder_t *open_decoder(int argc, char **argv, reason_t *reason) {
    ps_decoder_t *ps = NULL;
    cmd_ln_t *config;

    err_set_callback(keep_complaint, NULL);
    err_set_logfp(NULL); /* the list of options does not go by the callback */
    complaints = reason;
    config = cmd_ln_parse_r(NULL, ps_args(), argc, argv, 1);
    if (config != NULL) {
        ps = ps_init(config);
        cmd_ln_free_r(config);
    }
    complaints = NULL;
    return ps;
}

int add_word(decoder_t *ps, char *word, char *phones, reason_t *reason) {
    int id;
    complaints = reason;
    id = ps_add_word(ps, word, phones, 0);
    complaints = NULL;
    return id;
}

int set_grammar(decoder_t *ps, char *name, char *jsgf, reason_t *reason) {
    int failed;
    complaints = reason;
    failed = ps_set_jsgf_string(ps, name, jsgf);
    complaints = NULL;
    /* Reading the model leaves several times its size behind as free memory. */
    malloc_trim(0);
    return failed;
}

int use_grammar(decoder_t *ps, char *name, reason_t *reason) {
    int failed;
    complaints = reason;
    failed = ps_set_search(ps, name);
    complaints = NULL;
    return failed;
}

int spans(decoder_t *ps, span_t *out, int most) {
    int n = 0;
    ps_seg_t *seg;
    for (seg = ps_seg_iter(ps); seg != NULL; seg = ps_seg_next(seg)) {
        int32 score, unused;
        if (n == most) {
            ps_seg_free(seg);
            break;
        }
        out[n].word = ps_seg_word(seg);
        ps_seg_frames(seg, &out[n].first, &out[n].last);
        ps_seg_prob(seg, &score, &unused, &unused);
        out[n].score = score;
        n++;
    }
    return n;
}

void get_mean(decoder_t *ps, float *mean) {
    cmn_t *cmn = ps_get_feat(ps)->cmn_struct;
    int i;
    for (i = 0; i < cmn->veclen && i < cepstrumSize; i++)
        mean[i] = cmn->cmn_mean[i];
}

void set_mean(decoder_t *ps, float *mean, int frames) {
    cmn_t *cmn = ps_get_feat(ps)->cmn_struct;
    int i;
    for (i = 0; i < cmn->veclen && i < cepstrumSize; i++) {
        cmn->cmn_mean[i] = mean[i];
        cmn->sum[i] = mean[i] * frames;
    }
    cmn->nframe = frames;
}

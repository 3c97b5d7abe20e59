/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XRDMA_OPTION_H
#define XRDMA_OPTION_H

#include <xrdma/types.h>

XR_BEGIN_DECLS

/**
 * Options are rows of a table: the command line, --help and xr_option_set() come from the same row.
 *
 * They are written in gflags' manner: `--name=value`, `--name value`, `-name=value`; `-` and `_` in a name are alike;
 * a bool is `--name`, `--noname`, `--name=true|false`, or `--name true|false` (also yes/no, on/off).
 */
enum xr_option_type {
	XR_OPTION_BOOL,	  /**< value points to an int64_t, 0 or 1 */
	XR_OPTION_INT,	  /**< value points to an int64_t, min..max inclusive */
	XR_OPTION_STRING, /**< value points to a const char *; the library owns the text until xr_fini() */
	XR_OPTION_CALL,	  /**< no value: set() is called once per occurrence, in order (e.g. --port) */
};

struct xr_option {
	const char *name; /**< with `_` between words; NULL ends a table */
	char letter;	  /**< a one-letter form such as 'l' (-l 0-3), 0 for none */
	enum xr_option_type type;
	void *value;		   /**< as the type says; numbers are read and written with relaxed atomics */
	const char *default_value; /**< text, parsed like the user's; NULL: leave value as it is */
	int64_t min, max;	   /**< XR_OPTION_INT only */
	bool live;		   /**< may change after xr_init() */
	const char *placeholder;   /**< how --help names the value: "LIST", "MS"; NULL for a bool */
	const char *help;	   /**< one line: meaning, unit, where it may be set */
	/**
	 * Optional further check of STRING and CALL, run on the thread that sets. 0, or -EINVAL with *why set to text
	 * that says what is allowed (static, or in a buffer that lives until the next call on this thread). It must not
	 * call xr_option_set(). A STRING's text lives until xr_fini().
	 */
	int (*set)(const char *value, const char **why);
};

/**
 * Adds an application's own table, which must live until xr_fini(). Main thread, before xr_init(); does not block.
 * Errors, after one log line that names the row: -EEXIST a name or letter is taken already, -EINVAL the row is not well
 * formed (a name in other than lower case, min above max, nowhere to put the value); -EBUSY after xr_init(), -ENOMEM.
 * Nothing is added then.
 */
XR_API int xr_option_register(const struct xr_option *table);

/**
 * Sets one option by name. Any thread; does not block. why may be NULL; after an error it points to text that says
 * what was wrong and what is allowed, valid until the next call on the same thread.
 * Errors: -ENOENT no such option, -EINVAL not an allowed value, -EPERM not changeable after xr_init(), -ENOMEM.
 */
XR_API int xr_option_set(const char *name, const char *value, const char **why);

/**
 * The option's current value as text, written to buf (always terminated; cut when size is too small). Any thread; does
 * not block. Returns the length of the whole text, or -ENOENT.
 */
XR_API int xr_option_get(const char *name, char *buf, size_t size);

XR_END_DECLS

#endif

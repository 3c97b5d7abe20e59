/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HANDSHAKE_HELLO_H
#define NET_HANDSHAKE_HELLO_H

/* The hello and the ACK on the wire: brpc's version 2, 40 bytes, big endian. Pure functions over bytes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HELLO_MAGIC_BYTES 4u
#define HELLO_V2_BYTES	  40u
#define HELLO_V2_MAX	  4096u /* msg_len beyond it is a protocol error */
#define HELLO_V2_VERSION  2u	/* hello_ver and impl_ver of a hello that asks for RDMA */
#define HELLO_V2_IMPL	  1u
#define HELLO_ACK_BYTES	  4u
#define HELLO_ACK_RDMA	  1u /* bit 0 of the ACK's flags word: the client will use RDMA */

struct hello {
	uint16_t hello_ver;  /* 2 */
	uint16_t impl_ver;   /* 1 */
	uint32_t block_size; /* largest payload that the hello's sender takes in one SEND */
	uint16_t sq_size, rq_size;
	uint16_t lid;
	uint8_t gid[16];
	uint32_t qp_num;
};

/* hello_ver and impl_ver are written as they stand in the struct; msg_len is 40, there is no tail. */
void hello_v2_encode(const struct hello *hello, uint8_t out[HELLO_V2_BYTES]);

/* The hello of a server that can't or won't use RDMA. */
void hello_v2_encode_refusal(uint8_t out[HELLO_V2_BYTES]);

enum hello_parse {
	HELLO_GOT,     /* *used bytes, a tail after the 40th included */
	HELLO_PARTIAL, /* a prefix of a hello so far */
	HELLO_OTHER,   /* not this magic: some other protocol */
	HELLO_BAD,     /* the magic with a length that is not allowed */
};

/* data holds what has come so far, from the hello's first byte on. hello is filled in, and *used is not 0, when GOT. */
enum hello_parse hello_v2_decode(const uint8_t *data, size_t len, struct hello *hello, size_t *used);

/*
 * Versions, sizes and address such that a queue pair can be made of it; anything else is a refusal, and *why says in
 * static text what it was. brpc asks for the same versions and smallest sizes; the upper bounds are this library's own.
 */
bool hello_v2_negotiable(const struct hello *hello, const char **why);

void hello_ack_encode(bool use_rdma, uint8_t out[HELLO_ACK_BYTES]);

/* Whether the client will use RDMA. The word's other bits mean nothing yet. */
bool hello_ack_decode(const uint8_t ack[HELLO_ACK_BYTES]);

#endif
